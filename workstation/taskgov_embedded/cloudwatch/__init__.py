"""Metrics: embedded ones out of what functions print, and the data of a series."""
