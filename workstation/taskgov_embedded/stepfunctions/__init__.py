"""State machines: a strict interpreter, and what the API says of executions."""
