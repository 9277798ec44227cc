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
    """Of `ApplyConcurrency`."""
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
    """Count calls at the same time: a run of a cluster makes one, a Map as many as it may, a queue what scales it.

    A function that nothing of these calls (by a schedule, by people) counts once.
    """
    at_once = dict.fromkeys(functions, 1)
    for name, function in functions.items():
        for event in function.get("Events", {}).values():
            at_once[name] = event["Properties"].get("ScalingConfig", {}).get("MaximumConcurrency", 1)
    one_after_another = set[str]()
    for machine in template.machines().values():
        for called, wide in _calls(machine, 1):
            name = called.rpartition(":function:")[2].partition(":")[0]
            at_once[name] = wide
            if wide == 1:
                one_after_another.add(name)
    by_schedule = {
        schedule["Target"]["Arn"].rpartition(":function:")[2].partition(":")[0]
        for schedule in template.resources("AWS::Scheduler::Schedule").values()
    }
    runs = clusters if one_after_another else 0
    return runs + sum(number for name, number in at_once.items() if name not in one_after_another - by_schedule)


def _calls(machine: Mapping[str, Any], wide: int) -> Iterator[tuple[str, int]]:
    """Yield each function that a state machine calls, with how many calls of it there are at the same time."""
    for state in machine["States"].values():
        if state.get("Resource", "").endswith(":lambda:invoke"):
            yield state["Arguments"]["FunctionName"], wide
        if "ItemProcessor" in state:
            yield from _calls(state["ItemProcessor"], wide * int(state.get("MaxConcurrency", 1)))
