"""What did the reader's rights not let be seen? A snapshot that a person takes with few rights says so.

The functions see everything, or fail. `taskgov status`, `jobs` and `explain` continue with what a member of a team may
read, and take no number from the half of a truth: decisions and sums check here first.
"""

from dataclasses import dataclass
from enum import StrEnum


class Part(StrEnum):
    """What a snapshot consists of, as far as rights to it are given apart: stable tokens."""

    NODES = "nodes"
    RESOURCE_FLAVORS = "resource-flavors"
    COHORTS = "cohorts"
    CLUSTER_QUEUES = "cluster-queues"
    LOCAL_QUEUES = "local-queues"
    PRIORITY_CLASSES = "priority-classes"
    WORKLOADS = "workloads"
    LIMIT_RANGES = "limit-ranges"
    RUNTIME_CLASSES = "runtime-classes"
    INSTANCES = "instances"
    QUOTAS = "quotas"
    CLUSTER_POLICY = "cluster-policy"
    RECORDS = "records"
    """What a stack of taskgov keeps: the policy document, applied quotas, edits."""


@dataclass(frozen=True, slots=True)
class Unseen:
    """A part of the cluster that was read in part, or not at all."""

    part: Part
    because: str
    """What the service said."""
    seen: tuple[str, ...] = ()
    """What of it was read anyway: namespaces, or names of queues."""
