"""Adapters: the only code that touches the world; most have an in-memory counterpart in the tests."""
