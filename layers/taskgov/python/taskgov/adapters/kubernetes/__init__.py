"""Reads of a cluster's Kubernetes API: nodes, and Kueue's objects.

`KubernetesReader` reads EKS over `EksConnections`; on a person's machine `taskgov_cli.kubeconfig` stands in for them.
The `kubernetes` client is used rather than bare urllib3: it costs 0.1 s of import beside boto3 (0.20 s alone, urllib3
0.07 s); in return TLS, paging parameters and errors are its business. No decision may import it: only three functions
have its layer.
"""

from taskgov.adapters.kubernetes.connection import ApiConnections, EksConnections
from taskgov.adapters.kubernetes.reader import KubernetesReader

__all__ = ["ApiConnections", "EksConnections", "KubernetesReader"]
