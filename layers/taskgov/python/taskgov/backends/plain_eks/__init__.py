"""The backend of EKS clusters without HyperPod: quotas and cluster policy are kept on Kueue's objects."""
