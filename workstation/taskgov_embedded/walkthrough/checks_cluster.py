"""What holds in the cluster, compared with what was expected of a step: jobs, workloads, queues."""

from __future__ import annotations

import fnmatch
from typing import TYPE_CHECKING, Any

from taskgov.hyperpod.names import cluster_queue_of, namespace_of, team_of_cluster_queue
from taskgov.quantities import parse
from taskgov_embedded.cluster.states import condition_status, pods_belonging_to, workloads_of
from taskgov_embedded.walkthrough.step_result import Check, as_json, equal
from taskgov_embedded.walkthrough.team_jobs import find_job, job_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskgov_embedded.cluster.objects import KubeObject
    from taskgov_embedded.walkthrough.expectations import ConditionsCheck, QueueCheck, UsageCheck, WorkloadsTable
    from taskgov_embedded.walkthrough.part import Amounts
    from taskgov_embedded.walkthrough.step_result import StepResult
    from taskgov_embedded.walkthrough.world import World

GONE = "Gone"


def _jobs(expected: Mapping[str, str], result: StepResult, _world: World) -> Iterator[Check]:
    for job, state in expected.items():
        yield equal(f"job {job}", state, result.jobs_after.get(job, GONE))


def _pods(expected: Mapping[str, Mapping[str, int]], _result: StepResult, world: World) -> Iterator[Check]:
    for name, phases in expected.items():
        job = find_job(world.cluster.store, *name.split("/"))
        pods = pods_belonging_to(world.cluster.store, job) if job else []
        found: dict[str, int] = {}
        for pod in pods:
            found[pod["status"]["phase"]] = found.get(pod["status"]["phase"], 0) + 1
        yield equal(f"pods of {name}", dict(phases), found)


def _usage(expected: tuple[UsageCheck, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for team_usage in expected:
        found = result.usage_after.get(team_usage.team, {}).get(team_usage.flavor, {})
        for kind, place, amounts in (("total", 0, team_usage.total), ("borrowed", 1, team_usage.borrowed)):
            yield from _amounts(f"{team_usage.team} on {team_usage.flavor}, {kind}", amounts, found, place)


def _amounts(what: str, wanted: Amounts, found: Mapping[str, tuple[str, str]], place: int) -> Iterator[Check]:
    for resource, amount in wanted.items():
        shown = found[resource][place] if resource in found else None
        same = shown is not None and parse(resource, shown) == parse(resource, str(amount))
        yield Check(f"{what} {resource}", same, str(amount), shown or "no such resource")


def _workloads(expected: tuple[WorkloadsTable, ...], _result: StepResult, world: World) -> Iterator[Check]:
    """Compare `kubectl get workloads`; names without the digits of their hash, which the documents' differ in."""
    for table in expected:
        wanted = sorted((row.name, row.reserved_in, row.admitted, row.finished) for row in table.rows)
        found = sorted(_row(workload) for workload in world.cluster.store.list("workloads", namespace_of(table.team)))
        yield equal(f"kubectl get workloads -n {namespace_of(table.team)}", wanted, found)


def _row(workload: Mapping[str, Any]) -> tuple[str, str, str, str]:
    status = workload.get("status", {})
    return (
        workload["metadata"]["name"].rpartition("-")[0],
        status.get("admission", {}).get("clusterQueue", ""),
        condition_status(dict(workload), "Admitted"),
        condition_status(dict(workload), "Finished"),
    )


def _conditions(expected: tuple[ConditionsCheck, ...], _result: StepResult, world: World) -> Iterator[Check]:
    for job_check in expected:
        status = _workload_of(world, job_check.team, job_check.job).get("status", {})
        found = {condition["type"]: condition for condition in status.get("conditions", ())}
        for wanted in job_check.conditions:
            got = found.get(wanted.type, {})
            what = f"condition {wanted.type} of {job_check.team}/{job_check.job}"
            yield equal(
                f"{what}, status and reason", (wanted.status, wanted.reason), (got.get("status"), got.get("reason"))
            )
            message = got.get("message", "")
            yield Check(f"{what}, message", _matches(wanted.message, message), wanted.message, message)


def _workload_of(world: World, team: str, name: str) -> KubeObject:
    """Return the Workload of a team's job; empty when there is none."""
    job = find_job(world.cluster.store, team, name)
    return next(iter(workloads_of(world.cluster.store, job)), {}) if job else {}


def _matches(pattern: str, text: str) -> bool:
    """Return whether a text is the pattern's, where only `*` stands for anything."""
    literal = pattern.replace("[", "[[]").replace("?", "[?]")
    return fnmatch.fnmatchcase(text, literal)


def _queues(expected: tuple[QueueCheck, ...], _result: StepResult, world: World) -> Iterator[Check]:
    for queue_check in expected:
        queue = world.cluster.store.find("clusterqueues", cluster_queue_of(queue_check.team))
        for path, wanted in queue_check.holds.items():
            yield equal(f"ClusterQueue of {queue_check.team}, {path}", as_json(wanted), as_json(_at(queue or {}, path)))


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = (value or {}).get(part)
    return value


def _preemptions(expected: tuple[Any, ...] | None, result: StepResult, world: World) -> Iterator[Check]:
    wanted = [(preemption.victim, preemption.by, preemption.reason) for preemption in expected or ()]
    found = [
        (
            job_of(world.cluster.store, preemption.workload),
            team_of_cluster_queue(preemption.preemptor_queue),
            preemption.reason,
        )
        for cycle in result.cycles
        for preemption in cycle.preempted
    ]
    yield equal("preemptions", wanted, found)


def _priorities(expected: Mapping[str, int], _result: StepResult, world: World) -> Iterator[Check]:
    for name, wanted in expected.items():
        found = _workload_of(world, *name.split("/")).get("spec", {}).get("priority")
        yield equal(f"priority of {name}", wanted, found)


def _admitted_in_order(expected: tuple[str, ...] | None, result: StepResult, world: World) -> Iterator[Check]:
    found = [job_of(world.cluster.store, admitted.workload) for cycle in result.cycles for admitted in cycle.admitted]
    yield equal("admitted, in order", list(expected or ()), found)


CHECKS: Mapping[str, Callable[[Any, StepResult, World], Iterator[Check]]] = {
    "jobs": _jobs,
    "pods": _pods,
    "usage": _usage,
    "workloads": _workloads,
    "conditions": _conditions,
    "queues": _queues,
    "preemptions": _preemptions,
    "priorities": _priorities,
    "admitted_in_order": _admitted_in_order,
}
"""How members of `Expectations` are checked."""
