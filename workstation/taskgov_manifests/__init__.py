"""Manifests as people submit them: which queue they name, what pods they have, which Workloads Kueue makes of them."""
