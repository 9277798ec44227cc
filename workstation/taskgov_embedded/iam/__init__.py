"""Who calls, which permissions a call needs, and whether the policies give them."""
