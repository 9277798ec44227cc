"""What was expected of a step, compared with what holds. Each function answers for one kind of expectation."""

from __future__ import annotations

import fnmatch
import json
from typing import TYPE_CHECKING, Any

from taskgov.findings.of_state import POLICY_VIOLATION
from taskgov.hyperpod.names import cluster_queue_of, namespace_of, team_of_cluster_queue
from taskgov.quantities import parse
from taskgov_embedded.cluster.states import condition_status, pods_belonging_to
from taskgov_embedded.walkthrough import measured
from taskgov_embedded.walkthrough.step_result import Check
from taskgov_embedded.walkthrough.world import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskgov.allocation.plan import Change, Plan
    from taskgov_embedded.walkthrough.model import (
        Amounts,
        ChangeCheck,
        ConditionsCheck,
        Expectations,
        LeaseCheck,
        PlanCheck,
        QueueCheck,
        ReportCheck,
        RunCheck,
        TeamNoticeCheck,
        UsageCheck,
        WorkloadsTable,
    )
    from taskgov_embedded.walkthrough.step_result import StepResult
    from taskgov_embedded.walkthrough.world import World

GONE = "Gone"
GOVERNANCE_WRITES = frozenset(
    {
        "CreateComputeQuota",
        "UpdateComputeQuota",
        "DeleteComputeQuota",
        "CreateClusterSchedulerConfig",
        "UpdateClusterSchedulerConfig",
        "DeleteClusterSchedulerConfig",
    }
)


def check(expected: Expectations, result: StepResult, world: World) -> list[Check]:
    """Compare everything that the step expects; what it does not mention is not compared."""
    results: list[Check] = []
    for member in expected.model_fields_set:
        results += CHECKS[member](getattr(expected, member), result, world)
    return results


def equal(what: str, wanted: object, got: object) -> Check:
    """Return the check that two values are the same."""
    return Check(what, wanted == got, _shown(wanted), _shown(got))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else as_json(value)


def _jobs(expected: Mapping[str, str], result: StepResult, _world: World) -> Iterator[Check]:
    for job, state in expected.items():
        yield equal(f"job {job}", state, result.jobs_after.get(job, GONE))


def _pods(expected: Mapping[str, Mapping[str, int]], _result: StepResult, world: World) -> Iterator[Check]:
    for name, phases in expected.items():
        job = world.find_job(*name.split("/"))
        pods = pods_belonging_to(world.cluster.store, job) if job else []
        found: dict[str, int] = {}
        for pod in pods:
            found[pod["status"]["phase"]] = found.get(pod["status"]["phase"], 0) + 1
        yield equal(f"pods of {name}", dict(phases), found)


def _usage(expected: tuple[UsageCheck, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for one in expected:
        found = result.usage_after.get(one.team, {}).get(one.flavor, {})
        for kind, place, amounts in (("total", 0, one.total), ("borrowed", 1, one.borrowed)):
            yield from _amounts(f"{one.team} on {one.flavor}, {kind}", amounts, found, place)


def _amounts(what: str, wanted: Amounts, found: Mapping[str, tuple[str, str]], place: int) -> Iterator[Check]:
    for resource, amount in wanted.items():
        shown = found[resource][place] if resource in found else None
        same = shown is not None and parse(resource, shown) == parse(resource, str(amount))
        yield Check(f"{what} {resource}", same, str(amount), shown or "no such resource")


def _workloads(expected: tuple[WorkloadsTable, ...], _result: StepResult, world: World) -> Iterator[Check]:
    """Compare `kubectl get workloads`; names without the digits of their hash, which the documents' differ in."""
    for one in expected:
        wanted = sorted((row.name, row.reserved_in, row.admitted, row.finished) for row in one.rows)
        found = sorted(_row(each) for each in world.cluster.store.list("workloads", namespace_of(one.team)))
        yield equal(f"kubectl get workloads -n {namespace_of(one.team)}", wanted, found)


def _row(workload: Mapping[str, Any]) -> tuple[str, str, str, str]:
    status = workload.get("status", {})
    return (
        workload["metadata"]["name"].rpartition("-")[0],
        status.get("admission", {}).get("clusterQueue", ""),
        condition_status(dict(workload), "Admitted"),
        condition_status(dict(workload), "Finished"),
    )


def _conditions(expected: tuple[ConditionsCheck, ...], _result: StepResult, world: World) -> Iterator[Check]:
    for one in expected:
        job = world.find_job(one.team, one.job)
        workload = world.workload_of(job) if job else None
        found = {each["type"]: each for each in (workload or {}).get("status", {}).get("conditions", ())}
        for wanted in one.conditions:
            got = found.get(wanted.type, {})
            what = f"condition {wanted.type} of {one.team}/{one.job}"
            yield equal(
                f"{what}, status and reason", (wanted.status, wanted.reason), (got.get("status"), got.get("reason"))
            )
            message = got.get("message", "")
            yield Check(f"{what}, message", _matches(wanted.message, message), wanted.message, message)


def _matches(pattern: str, text: str) -> bool:
    """Tell whether a text is the pattern's, where only `*` stands for anything."""
    literal = pattern.replace("[", "[[]").replace("?", "[?]")
    return fnmatch.fnmatchcase(text, literal)


def _queues(expected: tuple[QueueCheck, ...], _result: StepResult, world: World) -> Iterator[Check]:
    for one in expected:
        queue = world.cluster.store.find("clusterqueues", cluster_queue_of(one.team))
        for path, wanted in one.holds.items():
            yield equal(f"ClusterQueue of {one.team}, {path}", as_json(wanted), as_json(_at(queue or {}, path)))


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(value, list):
            value = value[int(part)] if int(part) < len(value) else None
        else:
            value = (value or {}).get(part)
    return value


def _preemptions(expected: tuple[Any, ...] | None, result: StepResult, world: World) -> Iterator[Check]:
    wanted = [(each.victim, each.by, each.reason) for each in expected or ()]
    found = [
        (world.job_of(each.workload), team_of_cluster_queue(each.preemptor_queue), each.reason)
        for cycle in result.cycles
        for each in cycle.preempted
    ]
    yield equal("preemptions", wanted, found)


def _priorities(expected: Mapping[str, int], _result: StepResult, world: World) -> Iterator[Check]:
    for name, wanted in expected.items():
        job = world.find_job(*name.split("/"))
        workload = world.workload_of(job) if job else None
        yield equal(f"priority of {name}", wanted, (workload or {}).get("spec", {}).get("priority"))


def _admitted_in_order(expected: tuple[str, ...] | None, result: StepResult, world: World) -> Iterator[Check]:
    found = [world.job_of(each.workload) for cycle in result.cycles for each in cycle.admitted]
    yield equal("admitted, in order", list(expected or ()), found)


def _quotas(expected: tuple[Any, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for one in expected:
        found = [_given(each) for each in result.quotas_after.get(one.team, ())]
        yield equal(f"quota of {one.team}", as_json([_given(each) for each in one.resources]), as_json(found))


def _given(resource: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in resource.items() if value}


def _plan(expected: PlanCheck | None, result: StepResult, _world: World) -> Iterator[Check]:
    if expected is None or not result.plans:
        yield Check("a plan was made", passed=False, wanted="a plan", got="none")
        return
    plan = result.plans[-1]
    yield equal("outcome of the plan", expected.outcome, plan.outcome.value)
    if expected.changes is not None:
        yield equal("number of changes", len(expected.changes), len(plan.changes))
        for wanted, change in zip(expected.changes, plan.changes, strict=False):
            yield from _change(wanted, change)
    yield from _plan_findings(expected, plan)
    if expected.preempts is not None:
        effects = [f"{each.team}/{each.name}" for each in plan.prediction.effects if each.effect == "preempted"]
        yield equal("predicted preemptions", sorted(expected.preempts), sorted(effects))
    if expected.stopped_by is not None:
        stopped = {each.guardrail for each in plan.guardrails if not each.passed}
        yield equal("stopped by", sorted(expected.stopped_by), sorted(stopped))


def _change(wanted: ChangeCheck, change: Change) -> Iterator[Check]:
    yield equal(f"change {change.index + 1}, team", wanted.team, change.team)
    if wanted.gpus is not None:
        yield equal(f"change of {wanted.team}, GPUs", list(wanted.gpus), [change.gpus_before, change.gpus_after])
    if wanted.reason is not None:
        yield equal(f"change of {wanted.team}, reason", wanted.reason, change.reason.value)
    if wanted.because is not None:
        passed = wanted.because in change.because
        yield Check(f"change of {wanted.team}, sentence", passed, f"... {wanted.because} ...", change.because)


def _plan_findings(expected: PlanCheck, plan: Plan) -> Iterator[Check]:
    codes = {finding.code for finding in plan.findings}
    for code in expected.findings or ():
        yield Check(f"finding {code}", code in codes, code, ", ".join(sorted(codes)) or "no finding")
    for code in expected.not_findings:
        yield Check(f"no finding {code}", code not in codes, f"not {code}", ", ".join(sorted(codes)) or "no finding")
    if expected.violations is not None:
        found = [finding.subject for finding in filter(POLICY_VIOLATION.is_of, plan.findings)]
        yield Check("broken rules", len(found) == expected.violations, str(expected.violations), ", ".join(found))


def _runs(expected: tuple[RunCheck, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for one in expected:
        found = [status for machine, status in result.executions if machine == one.machine]
        number = found.count(one.status)
        passed = number > 0 if one.count == "some" else number == one.count
        what = f"executions of {one.machine} that end {one.status}"
        yield Check(what, passed, str(one.count), ", ".join(found) or "none")


def _metrics(expected: tuple[Any, ...], _result: StepResult, world: World) -> Iterator[Check]:
    for one in expected:
        dimensions = measured.dimensions_of(one, world.cluster_name)
        got = measured.read(world, one.name, dimensions, one.statistic)
        named = ", ".join(value for name, value in dimensions.items() if name != "Cluster")
        yield equal(f"metric {one.name} ({named})", one.value, got)


def _published(expected: tuple[str, ...], result: StepResult, _world: World) -> Iterator[Check]:
    found = [event["detail-type"] for event in result.published]
    for detail_type in expected:
        yield Check(f"event {detail_type!r}", detail_type in found, detail_type, ", ".join(found) or "none")


def _notices(expected: tuple[str, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for text in expected:
        passed = any(text in notice for notice in result.notices)
        yield Check(f"a notice says {text!r}", passed, text, f"{len(result.notices)} notices")


def _team_notices(expected: tuple[TeamNoticeCheck, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for one in expected:
        said = [text for topic, text in result.team_notices if topic == one.topic]
        if not one.says:
            yield equal(f"messages on {one.topic}", "none", "; ".join(said) or "none")
        for text in one.says:
            shown = "; ".join(said) or "nothing"
            yield Check(f"{one.topic} is told {text!r}", any(text in each for each in said), text, shown)


def _dead_letters(expected: int | None, _result: StepResult, world: World) -> Iterator[Check]:
    yield equal("messages in the dead-letter queue", expected, world.dead_letters())


def _ignored(expected: int | None, result: StepResult, _world: World) -> Iterator[Check]:
    received = [each for each in result.invocations if each.function == "ReceiveEventFunction"]
    lines = [json.loads(line) for each in received for line in each.log if line.startswith("{")]
    yield equal("events ignored", expected, sum(line.get("message") == "event ignored" for line in lines))


def _writes(expected: int | None, result: StepResult, _world: World) -> Iterator[Check]:
    written = [
        call.operation
        for call in result.calls
        if call.operation in GOVERNANCE_WRITES and call.principal.role_arn and call.error is None
    ]
    written += result.kueue_writes
    yield Check("writes by the automation", len(written) == expected, str(expected), f"{len(written)}: {written}")


def _leases(expected: tuple[LeaseCheck, ...] | None, result: StepResult, _world: World) -> Iterator[Check]:
    wanted = [(each.to, each.donor, each.count, each.state) for each in expected or ()]
    found = [(each.borrower, each.donor, each.count, each.state.value) for each in result.leases]
    yield equal("leases", wanted, found)


def _report(expected: ReportCheck | None, result: StepResult, _world: World) -> Iterator[Check]:
    if expected is None or not result.reports:
        yield Check("an audit report was made", passed=False, wanted="a report", got="none")
        return
    report = result.reports[-1]
    data = json.loads(report["json"])
    codes = {finding["code"] for finding in data["findings"]}
    for code in expected.findings:
        yield Check(f"the report has finding {code}", code in codes, code, ", ".join(sorted(codes)) or "none")
    apart = {
        "muted": (expected.muted, data["muted"]),
        "new": (expected.new, [each for each in data["findings"] if each["isNew"]]),
        "gone": (expected.gone, data["trend"]["resolved"]),
    }
    for what, (wanted, found) in apart.items():
        if wanted is not None:
            yield equal(f"findings that are {what}", sorted(wanted), sorted({each["code"] for each in found}))
    remedied = sorted({each["code"] for each in data["findings"] if each["plan"]})
    for code in expected.remedied:
        yield Check(f"a plan remedies {code}", code in remedied, code, ", ".join(remedied) or "none")
    page = report["html"].decode()
    for text in expected.shows:
        yield Check(f"the report shows {text!r}", text in page, text, f"a page of {len(page)} characters")


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
    "quotas": _quotas,
    "leases": _leases,
    "plan": _plan,
    "runs": _runs,
    "metrics": _metrics,
    "published": _published,
    "notices": _notices,
    "team_notices": _team_notices,
    "dead_letters": _dead_letters,
    "ignored": _ignored,
    "writes": _writes,
    "report": _report,
}
"""How each member of `Expectations` is checked; a test holds the two together."""
