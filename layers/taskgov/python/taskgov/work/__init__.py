"""The record of work: one record for each attempt of a workload, what quotas were used for, and when nobody looked."""
