"""The backend of HyperPod clusters on EKS: SageMaker keeps quotas and cluster policy, its add-on governs Kueue."""
