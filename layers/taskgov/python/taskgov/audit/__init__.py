"""Findings about a governed cluster, and the report that shows them."""
