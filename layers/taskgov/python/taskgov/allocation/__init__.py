"""Quotas that follow the cluster: capacity, shares, leases, guardrails, plan."""
