"""Lambda: how functions are invoked, which code runs, and what a handler sees."""
