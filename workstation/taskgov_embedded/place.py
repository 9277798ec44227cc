"""Where the account is, and the ARNs of what is in it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Place:
    """Where the account is, for making ARNs."""

    account: str
    region: str
    partition: str = "aws"
    cluster_arns: dict[str, str] = field(default_factory=dict)
    """HyperPod clusters by name: their ARNs end in an id, which is not in the name."""
    eks_names: dict[str, str] = field(default_factory=dict)
    """The name of the EKS cluster of each HyperPod cluster that has one, by the HyperPod cluster's ARN."""
    hash_keys: dict[str, str] = field(default_factory=dict)
    """The partition key's name of each table."""
    stacks: dict[str, str] = field(default_factory=dict)
    """CloudFormation stacks by name: their ARNs end in an id, which is not in the name."""
    kms_keys: dict[str, str] = field(default_factory=dict)
    """The ARN of the KMS key that encrypts a topic, a queue or a state machine, by that one's ARN."""

    def arn(self, service: str, resource: str) -> str:
        """Return the ARN of a resource of this account and Region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"
