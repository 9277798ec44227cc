"""The machines of a world: instance types, nodes and their health, groups with one thread per core."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from benchmarks.worlds_draw import Draw
from taskgov.hyperpod.instance_types import KNOWN_TYPES, InstanceResources, InstanceTypeTable
from taskgov.quantities import CPU, EFA, GIBIBYTE, GPU, MEMORY, NEURON_DEVICE
from taskgov.snapshot.model import GroupInstanceType, InstanceGroup, Node, Taint

NOW: Final = datetime(2026, 11, 20, 12, tzinfo=UTC)
ARN: Final = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
TYPES: Final = (
    "ml.g5.8xlarge",
    "ml.g6.12xlarge",
    "ml.p5.48xlarge",
    "ml.p4d.24xlarge",
    "ml.trn1.32xlarge",
    "ml.c5.2xlarge",
    "ml.m5.xlarge",
    "ml.c5n.9xlarge",
    "ml.c5n.large",
    "ml.g6e.24xlarge",
)
PARTITIONED: Final = ("ml.p4d.24xlarge", "ml.p5.48xlarge")
UNKNOWN: Final = "ml.z9.4xlarge"
"""A type that no table has; the document may state its numbers."""
UNKNOWN_NUMBERS: Final = InstanceResources(vcpu=16, memory_gib=64, gpu=2, efa=1)


@dataclass(frozen=True, slots=True)
class Machines:
    """What there is, and what the document has to say about it."""

    types: tuple[str, ...]
    nodes: tuple[Node, ...]
    groups: tuple[InstanceGroup, ...]
    capacity_rules: Mapping[str, Any]
    stated_types: Mapping[str, Any]
    """The `instanceTypes` section of the document."""
    memory_reserved_percent: int

    @property
    def table(self) -> InstanceTypeTable:
        """The numbers of all types, also of the one that nobody but HyperPod knows."""
        return InstanceTypeTable({UNKNOWN: UNKNOWN_NUMBERS})

    def healthy(self, instance_type: str) -> int:
        """Return how many nodes of a type are in order."""
        return sum(node.instance_type == instance_type and node.health is None for node in self.nodes)


def draw_machines(draw: Draw) -> Machines:
    """Draw the machines of a world."""
    mix = draw.mix
    pool = PARTITIONED if draw.chance(mix.mig) else TYPES
    types = draw.some(pool, *(2 * (draw.pick(mix.types),)))
    if mix.types == (1,):
        types = [draw.pick(TYPES[:4])]
    if draw.chance(mix.unknown):
        types.append(UNKNOWN)
    odd = draw.chance(mix.odd_machines)
    rules: dict[str, Any] = {}
    if odd and draw.chance(0.35):
        rules["basis"] = "allocatable"
    if odd and draw.chance(0.3):
        rules["overcommitPercent"] = draw.pick([10, 25, 50, 100])
    if odd and draw.chance(0.3):
        rules["headroomPercent"] = draw.pick([5, 10, 25, 50])
    stated = {}
    if UNKNOWN in types and draw.chance(0.2 if draw.mix.doubles else 0.6):
        stated[UNKNOWN] = {"vcpu": 16, "memoryGiB": 64, "gpu": 2, "efa": 1}
    single = odd and draw.chance(0.4)
    nodes = [node for name in types for node in _nodes(draw, name, single=single, odd=odd)]
    groups: tuple[InstanceGroup, ...] = ()
    if single:
        groups = (InstanceGroup("single", tuple(GroupInstanceType(name, 1) for name in types)),)
    reserved = draw.pick([0, 0, 20]) if rules.get("basis") else 0
    return Machines(tuple(types), tuple(nodes), groups, rules, stated, reserved)


def _nodes(draw: Draw, instance_type: str, *, single: bool, odd: bool) -> list[Node]:
    if draw.chance(max(0.1 * odd, draw.mix.no_nodes)):
        return []
    nodes = []
    for number in range(draw.number(1, draw.mix.nodes)):
        group = "single" if single and draw.chance(0.6) else "workers"
        fields: dict[str, Any] = {"instance_group": group}
        if draw.chance(0.3 * draw.mix.sick):
            fields |= _sickness(draw)
        # Where nobody is to know a type, its nodes do not tell either.
        untold = instance_type == UNKNOWN and draw.mix.doubles
        if odd or draw.chance(0.0 if untold else 0.3):
            fields["allocatable"] = _allocatable(draw, instance_type, one_thread=group == "single")
        nodes.append(Node(name=f"{instance_type}-n-{number:03}", instance_type=instance_type, **fields))
    return nodes


def _sickness(draw: Draw) -> dict[str, Any]:
    """Draw a node that is out of order, on its way out (held), on its way in, or one that keeps turning."""
    long_ago, just_now = NOW - timedelta(days=1), NOW - timedelta(minutes=draw.number(1, 4))
    return draw.pick(
        [
            {"health": "Unschedulable", "unhealthy_since": long_ago},
            {"health": "UnschedulablePendingReplacement", "unhealthy_since": just_now},
            {"cordoned": True, "unhealthy_since": just_now},
            {"cordoned": True, "unhealthy_since": long_ago},
            {"ready": False, "unhealthy_since": long_ago},
            {"healthy_since": just_now},
            {"healthy_since": long_ago},
            {"instance_status": "DeepHealthCheckInProgress"},
            {"taints": (Taint("node.kubernetes.io/not-ready", "", "NoSchedule"),)},
            {"found_healthy": True, "turns": (long_ago, just_now), "healthy_since": just_now},
        ]
    )


def _allocatable(draw: Draw, instance_type: str, *, one_thread: bool) -> dict[str, int]:
    """Draw what the kubelet offers: a little less than the type has, half of the vCPUs at one thread per core."""
    numbers = KNOWN_TYPES.get(instance_type, UNKNOWN_NUMBERS)
    vcpu = numbers.vcpu // 2 if one_thread else numbers.vcpu
    offered = {
        CPU: vcpu * 1000 - draw.pick([70, 110, 550]),
        MEMORY: int(numbers.memory_gib * GIBIBYTE) - draw.pick([1, 2]) * GIBIBYTE // 2,
        GPU: numbers.gpu,
        NEURON_DEVICE: numbers.neuron_device,
        EFA: numbers.efa,
    }
    return {name: amount for name, amount in offered.items() if amount}
