"""How much of the account's quotas does the stack need? Counted in the template, so that it is stated there only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from taskgov_cli.preflight.template import FUNCTION, MACHINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov_cli.preflight.template import Template


@dataclass(frozen=True, slots=True)
class Needs:
    """What the stack needs when it governs `clusters` clusters."""

    clusters: int
    rules: int
    """EventBridge rules on the account's own bus; those on the stack's bus count there."""
    buses: int
    state_machines: int
    schedules: int
    """The template's, and one for each cluster: when a run has to look again."""
    schedule_groups: int
    concurrency: int
    """Calls of functions at the same time, at most."""
    reserved: int
    """The value of `ApplyConcurrency`."""
    in_vpc: tuple[str, ...]
    """Subnets of the functions that run in a VPC; none where no function does."""


def needs_of(template: Template, clusters: int) -> Needs:
    """Count what the template needs with its parameters."""
    rules = template.resources("AWS::Events::Rule").values()
    functions = template.resources(FUNCTION)
    subnets = [function["VpcConfig"]["SubnetIds"] for function in functions.values() if "VpcConfig" in function]
    return Needs(
        clusters=clusters,
        rules=sum("EventBusName" not in rule for rule in rules),
        buses=len(template.resources("AWS::Events::EventBus")),
        state_machines=len(template.resources(MACHINE)),
        schedules=len(template.resources("AWS::Scheduler::Schedule")) + clusters,
        schedule_groups=len(template.resources("AWS::Scheduler::ScheduleGroup")),
        concurrency=_concurrency(template, functions, clusters),
        reserved=int(template.parameters["ApplyConcurrency"]),
        in_vpc=tuple(str(subnets[0]).split(",")) if subnets else (),
    )


def _concurrency(template: Template, functions: Mapping[str, Any], clusters: int) -> int:
    """Count calls at the same time, when none hangs: of each state machine, of a queue, of people.

    A machine of one cluster makes one call at a time, in an execution for each; a Map goes through the clusters,
    as many at a time as it may. A function that no machine calls counts as often as its queue scales it, else once.
    """
    calls = [list(_calls(machine, None)) for machine in template.machines().values()]
    called = {arn.rpartition(":function:")[2].partition(":")[0] for of in calls for arn, _ in of}
    by_machines = sum(max(clusters if wide is None else min(wide, clusters) for _, wide in of) for of in calls)
    return by_machines + sum(_scaled(function) for name, function in functions.items() if name not in called)


def _scaled(function: Mapping[str, Any]) -> int:
    queues = [event["Properties"].get("ScalingConfig", {}) for event in function.get("Events", {}).values()]
    return max((queue.get("MaximumConcurrency", 1) for queue in queues), default=1)


def _calls(machine: Mapping[str, Any], wide: int | None) -> Iterator[tuple[str, int | None]]:
    """Yield each function that a state machine calls, with how many calls of it a Map makes at the same time."""
    for state in machine["States"].values():
        if state.get("Resource", "").endswith(":lambda:invoke"):
            yield state["Arguments"]["FunctionName"], wide
        if "ItemProcessor" in state:
            yield from _calls(state["ItemProcessor"], int(state["MaxConcurrency"]))
