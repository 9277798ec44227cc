"""The record of work, as people read it."""
