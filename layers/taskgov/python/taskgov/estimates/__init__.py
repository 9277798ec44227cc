"""Estimate when a job will start: simulated futures, their quantiles, and the outcomes of earlier estimates."""
