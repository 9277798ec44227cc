"""Adapters: the only code that touches the world; each has its in-memory twin."""
