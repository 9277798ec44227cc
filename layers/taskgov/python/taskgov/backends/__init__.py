"""Who keeps the quotas of a cluster: a folder for each backend, and the registry that says which is whose."""
