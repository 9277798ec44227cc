"""How many threads the cores of a node run: what SageMaker says of its instance group.

Capacity, observed use and the audit count vCPUs by it: an instance with multithreading switched off has half of the
vCPUs that its type is known for.
"""

from collections.abc import Iterable
from operator import attrgetter

from taskgov.hyperpod.instance_types import InstanceResources
from taskgov.snapshot.model import InstanceGroup, Node


class Threads:
    """The threads per core of every node, by its instance group and type."""

    def __init__(self, groups: Iterable[InstanceGroup]) -> None:
        self._per_core = {
            (group.name, member.instance_type): member.threads_per_core
            for group in groups
            for member in group.instance_types
        }

    def numbers_of(self, node: Node, nominal: InstanceResources) -> InstanceResources:
        """Return what the node has, of the numbers of its type; a node of no known group runs the type's default."""
        return nominal.at_threads(self._per_core.get((node.instance_group or "", node.instance_type)))

    def least(self, nodes: Iterable[Node], nominal: InstanceResources) -> InstanceResources:
        """Return what every one of the nodes has at least."""
        numbers = (self.numbers_of(node, nominal) for node in nodes)
        return min(numbers, key=attrgetter("real_vcpu"), default=nominal)
