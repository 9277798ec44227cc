"""taskgov: decisions that keep GPU quotas true on shared clusters.

The rooms and which of them may use which are in `docs/architecture.md`.
"""
