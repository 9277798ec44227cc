"""What time it is in the stack, what is due next, and whose turn it is."""
