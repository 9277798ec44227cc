"""Measurements: how fast, how much memory, and whether the decisions are right."""
