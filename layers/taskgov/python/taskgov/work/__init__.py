"""The record of work: the attempts of workloads, how quotas were used, and when a cluster was measured."""
