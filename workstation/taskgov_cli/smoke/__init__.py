"""`taskgov smoke`: try the product on a real account, and see what AWS does that is inferred today."""
