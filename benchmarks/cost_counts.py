"""What does taskgov ask of AWS, for a cluster of so many nodes? Counted on the embedded stack, nothing estimated.

A stack has five activities: each minute's measurement, an estimate of starts after a change of the queue, an hourly run
on a cluster at rest, a node that fails and is replaced (two runs that write), and the nightly audit. Each is played by
itself, and its requests are counted.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from math import ceil
from typing import TYPE_CHECKING, Any, Final

from taskgov.estimates.kept import ALL_TEAMS, KEY, KeptEstimates, TeamScore
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.stack import Stack

P5 = "ml.p5.48xlarge"
MINUTES = 5
"""Minutes of publishing that are played, and divided by."""
TEAMS = {10: 4, 100: 10, 1000: 25}
"""Teams that share a cluster of that size: an assumption, because series grow with teams and not with nodes."""
FAN_OUT = "FanOutStateMachine"
"""The one Express machine of the template."""
LIST_CALLS = ("List", "Put", "Copy")


@dataclass(slots=True)
class Counts:
    """Requests of one activity. `invocations` and `calls` are by function."""

    invocations: dict[str, float] = field(default_factory=dict)
    calls: dict[str, float] = field(default_factory=dict)
    """AWS and Kubernetes requests that each function made and waited for."""
    totals: dict[str, float] = field(default_factory=dict)
    """By the name of the price (`cost_prices.yaml`)."""
    log_bytes: float = 0
    """What the functions printed, embedded metrics included; Lambda's own lines are not in it."""

    def per(self, number: int) -> Counts:
        """Return the counts of one of `number` times."""

        def share(part: dict[str, float]) -> dict[str, float]:
            return {key: one / number for key, one in part.items()}

        return Counts(share(self.invocations), share(self.calls), share(self.totals), self.log_bytes / number)


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was counted for one size."""

    nodes: int
    teams: int
    activities: Mapping[str, Counts]
    fixed: Mapping[str, float]
    """What is there all month: series, alarm metrics, dashboards, keys."""
    series: Mapping[str, int]
    """Series by metric."""
    stored_bytes: Mapping[str, float]
    """Bytes of one snapshot, plan and report."""
    memory_mb: Mapping[str, int]


def measure(nodes: int, teams: int) -> Measured:
    """Build a cluster of this size on the embedded stack, let each thing happen once, and count."""
    with World(_walkthrough(nodes, teams)) as world:
        list(Runner(world.walkthrough, world).run())
        _keep_scores(world, teams)
        activities = {
            "minute": _counted(world, lambda: world.stack.advance(60 * MINUTES, ["PublishUsageSchedule"])).per(MINUTES),
            "starts": _counted(world, lambda: _fire(world, "EstimateStartsSchedule")),
            "look": _counted(world, lambda: _fire(world, "ResyncAllSchedule")),
            "fault": _counted(world, lambda: _fault(world)),
            "audit": _counted(world, lambda: _fire(world, "AuditAllSchedule")),
        }
        series = _series(world)
        return Measured(
            nodes=nodes,
            teams=teams,
            activities=activities,
            fixed={"custom_metrics": sum(series.values()), **_fixed(world)},
            series=series,
            stored_bytes=_stored(world),
            memory_mb={
                one: _memory(world, one) for one in world.stack.translated.resources_of("AWS::Lambda::Function")
            },
        )


def to_json(measured: list[Measured]) -> str:
    """Return the counts as they are kept beside the page."""
    rounded = json.loads(
        json.dumps([asdict(each) for each in measured]), parse_float=lambda text: round(float(text), 3)
    )
    return json.dumps(rounded, indent=1, sort_keys=True) + "\n"


def from_json(text: str) -> list[Measured]:
    """Read counts again."""
    return [
        Measured(**{**each, "activities": {name: Counts(**one) for name, one in each["activities"].items()}})
        for each in json.loads(text)
    ]


def _walkthrough(nodes: int, teams: int) -> Walkthrough:
    each = nodes // teams
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
        "schedulerConfig": {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": 70}]},
        "teams": [
            {"name": f"team-{n}", "share": [{"instanceType": P5, "percent": 100 // teams}], "fairShareWeight": 10}
            for n in range(teams)
        ],
        "sharedPool": {"team": "shared-pool"},
        "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
    }
    jobs = [
        {"submit": {"team": f"team-{n}", "name": "train", "pods": max(each - 1, 1), "request": {"nvidia.com/gpu": 8}}}
        for n in range(teams)
    ]
    return Walkthrough.model_validate(
        {
            "name": f"{nodes} nodes",
            "source": "benchmarks/cost_counts.py",
            "about": "a cluster at work",
            "mode": "apply",
            "starts": "2026-11-20T09:00:00Z",
            "cluster": {"groups": [{"instanceType": P5, "count": nodes}]},
            "steps": [{"title": "so it is", "do": [{"policy": document}, *jobs, {"waitMinutes": 2}], "expect": {}}],
        }
    )


def _keep_scores(world: World, teams: int) -> None:
    """Let each team have outcomes of estimates, so that their series are counted."""
    names = [ALL_TEAMS, *(f"team-{n}" for n in range(teams))]
    kept = KeptEstimates(world.clock.now, scores=dict.fromkeys(names, TeamScore(100, 0.5, 0.9)))
    world.stack.client("s3").put_object(
        Bucket=world.stack.physical("GovernanceBucket"), Key=KEY.format(world.cluster_name), Body=kept.to_bytes()
    )


def _fire(world: World, schedule: str) -> None:
    world.stack.fire(schedule)
    world.stack.run_until_quiet()


def _fault(world: World) -> None:
    """Let a node fail, and be well again an hour later: two runs that write."""
    node = world.cluster.nodes()[0].instance_id
    for happens in (world.cluster.fail_node, world.cluster.recover_node):
        happens(node)
        world.stack.sagemaker.emit_node_health(
            world.registered, node, healthy=happens == world.cluster.recover_node, reason=""
        )
        world.stack.run_until_quiet()


def _counted(world: World, doing: Callable[[], None]) -> Counts:
    stack = world.stack
    before, kubernetes, told = len(stack.calls), len(world.api_server.calls), len(stack.results)
    entered = _transitions(stack)
    doing()
    if failed := [one for one in stack.results[told:] if one.is_error]:
        raise RuntimeError(f"only what goes well is counted: {failed[0].function}: {failed[0].payload}")
    calls, results = stack.calls[before:], stack.results[told:]
    made = Counter[str]()
    for (function, _, _), number in asked(world, before, kubernetes).items():
        made[function] += number
    totals = Counter[str]()
    for call in calls:
        totals.update(_priced(call))
    invocations = Counter(one.function for one in results)
    totals["lambda_requests"] = sum(invocations.values())
    totals["state_transitions"] = _transitions(stack) - entered
    log_bytes = sum(len(line.encode()) for one in results for line in one.log)
    return Counts(dict(invocations), dict(made), dict(totals), log_bytes)


def asked(world: World, aws: int, kubernetes: int) -> Counter[tuple[str, str, str]]:
    """Return how often each function asked a service for what, since so many requests of AWS and of Kubernetes."""
    stack = world.stack
    functions = stack.translated.resources_of("AWS::Lambda::Function")
    roles = {stack.physical(f"{each.removesuffix('Function')}Role"): each for each in functions}
    keys = {
        stack.account.identities.assume(_role(world, one), stack.physical(one)).access_key: one for one in functions
    }
    found = Counter(
        (roles[call.principal.name], call.service, call.operation)
        for call in stack.calls[aws:]
        if call.principal.name in roles
    )
    found.update(
        (keys[one.caller], "kubernetes", one.method)
        for one in world.api_server.calls[kubernetes:]
        if one.caller in keys
    )
    return found


def _transitions(stack: Stack) -> int:
    """Return how many states executions have entered; those of Express machines are not charged for."""
    return sum(":express:" not in moment.detail["execution"] for moment in stack.timeline.of("state"))


def _role(world: World, function: str) -> str:
    role: str = world.stack.resolved(function).properties["Role"]
    return role


def _priced(call: Call) -> Mapping[str, float]:
    """Return what a request costs, by the names of the prices."""
    match call.service:
        case "dynamodb":
            return _dynamodb(call)
        case "s3":
            return {"s3_puts" if call.operation.startswith(LIST_CALLS) else "s3_gets": 1}
        case "sqs":
            return {"sqs_requests": 1}
        case "stepfunctions" if FAN_OUT in call.params.get("stateMachineArn", ""):
            return {"express_requests": 1}
        case "events" if call.operation == "PutEvents":
            return {"custom_events": len(call.params["Entries"])}
        case _:
            return PRICED.get((call.service, call.operation), {})


PRICED: Final[Mapping[tuple[str, str], Mapping[str, float]]] = {
    ("sns", "Publish"): {"notices": 1, "kms_requests": 1},
    ("stepfunctions", "StartExecution"): {"kms_requests": 2},
}
"""A run that is shorter than a data key's five minutes asks for one, and for its decryption."""


def _dynamodb(call: Call) -> Mapping[str, float]:
    """Return request units: a write takes one a KiB of what is sent, a consistent read one a 4 KiB item (all are)."""
    if call.operation in {"GetItem", "Query"}:
        return {"dynamodb_reads": 1}
    if call.operation == "BatchGetItem":
        return {"dynamodb_reads": sum(len(each["Keys"]) for each in call.params["RequestItems"].values())}
    size = len(json.dumps(call.params, default=str))
    return {"dynamodb_writes": ceil(size / 1024)}


def _series(world: World) -> dict[str, int]:
    pages = world.stack.client("cloudwatch").get_paginator("list_metrics").paginate(Namespace="TaskGovernance")
    found = {
        (each["MetricName"], tuple(sorted((one["Name"], one["Value"]) for one in each["Dimensions"])))
        for page in pages
        for each in page["Metrics"]
    }
    return dict(sorted(Counter(name for name, _ in found).items()))


def _fixed(world: World) -> dict[str, float]:
    resources = world.stack.translated
    named = resources.resources_of("AWS::CloudWatch::Alarm")
    created = [one for one in named if "Condition" not in resources.cfn["Resources"][one]]  # the others are off
    alarms = [world.stack.resolved(one).properties for one in created]
    metrics = sum(sum("MetricStat" in one for one in each.get("Metrics", ())) or 1 for each in alarms)
    return {
        "alarm_metrics": metrics,
        "dashboards": len(list(resources.resources_of("AWS::CloudWatch::Dashboard"))),
        "kms_keys": len(list(resources.resources_of("AWS::KMS::Key"))),
    }


def _stored(world: World) -> dict[str, float]:
    """Return the mean size of what each kind of document takes."""
    pages = (
        world.stack.client("s3")
        .get_paginator("list_objects_v2")
        .paginate(Bucket=world.stack.physical("GovernanceBucket"))
    )
    sizes: dict[str, list[int]] = {}
    for page in pages:
        for each in page.get("Contents", ()):
            sizes.setdefault(each["Key"].partition("/")[0], []).append(each["Size"])
    return {kind: sum(found) / len(found) for kind, found in sorted(sizes.items())}


def _memory(world: World, function: str) -> int:
    found: Any = world.stack.resolved(function).properties["MemorySize"]
    return int(found)
