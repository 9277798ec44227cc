"""How does everybody stand? Who is guaranteed, uses, borrows, lends and waits; metrics, audit and explain ask."""
