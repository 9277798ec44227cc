"""Reads of a cluster's Kubernetes API: nodes, and Kueue's objects.

`KubernetesReader` reads EKS over `EksConnections`, and on a person's machine over `KubeconfigConnections`;
`InMemoryKubernetes` is its twin. The `kubernetes` client is used
rather than bare urllib3: it costs 0.1 s of import beside boto3 (0.20 s alone, urllib3 0.07 s); in return TLS, paging
parameters and errors are its business. No decision may import it: only three functions have its layer.
"""

from taskgov.adapters.kubernetes.connection import ApiConnections, EksConnections
from taskgov.adapters.kubernetes.kubeconfig import KubeconfigConnections
from taskgov.adapters.kubernetes.memory import InMemoryKubernetes
from taskgov.adapters.kubernetes.reader import KubernetesReader

__all__ = ["ApiConnections", "EksConnections", "InMemoryKubernetes", "KubeconfigConnections", "KubernetesReader"]
