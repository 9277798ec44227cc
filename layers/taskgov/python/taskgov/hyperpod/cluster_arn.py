"""Is this text the ARN of a cluster? Everything that is stored or locked for a cluster has this ARN as its key.

Read at the edge (events, commands, messages between steps): one cluster has one ARN, so it has one lock.
"""

import re
from typing import Final

from taskgov.hyperpod.limits import CLUSTER_ARN, matcher

EKS_ARN: Final = re.compile(r"arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/(?P<name>[0-9A-Za-z][A-Za-z0-9_-]{0,99})")
"""The ARN of an EKS cluster; its name by the pattern of EKS' CreateCluster."""
SHOWN: Final = 100


def cluster_arn(text: str) -> str:
    """Return `text` if it is the ARN of a HyperPod or EKS cluster. Raises ValueError that quotes what it is instead.

    Example:
        >>> cluster_arn("arn:aws-cn:sagemaker:cn-north-1:111122223333:cluster/abcdefghijkl")
        'arn:aws-cn:sagemaker:cn-north-1:111122223333:cluster/abcdefghijkl'
        >>> cluster_arn("ml-cluster")
        Traceback (most recent call last):
        ValueError: 'ml-cluster' is not the ARN of a HyperPod or EKS cluster

    """
    if matcher(CLUSTER_ARN.pattern)(text) or EKS_ARN.fullmatch(text):
        return text
    raise ValueError(f"{ascii(text)[:SHOWN]} is not the ARN of a HyperPod or EKS cluster")
