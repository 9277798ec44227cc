"""What the automation did, compared with what was expected of a step: quotas, plans, runs, notices."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskgov.findings.of_state import POLICY_VIOLATION
from taskgov_embedded.walkthrough import measured
from taskgov_embedded.walkthrough.step_result import Check, as_json, equal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskgov.allocation.plan import Change, Plan
    from taskgov_embedded.walkthrough.expectations import (
        ChangeCheck,
        LeaseCheck,
        PlanCheck,
        ReportCheck,
        RunCheck,
        TeamNoticeCheck,
    )
    from taskgov_embedded.walkthrough.step_result import StepResult
    from taskgov_embedded.walkthrough.world import World

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


def _quotas(expected: tuple[Any, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for quota in expected:
        found = [_given(resource) for resource in result.quotas_after.get(quota.team, ())]
        yield equal(
            f"quota of {quota.team}", as_json([_given(resource) for resource in quota.resources]), as_json(found)
        )


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
        effects = [f"{effect.team}/{effect.name}" for effect in plan.prediction.effects if effect.effect == "preempted"]
        yield equal("predicted preemptions", sorted(expected.preempts), sorted(effects))
    if expected.stopped_by is not None:
        stopped = {verdict.guardrail for verdict in plan.guardrails if not verdict.passed}
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
    for run in expected:
        found = [status for machine, status in result.executions if machine == run.machine]
        number = found.count(run.status)
        passed = number > 0 if run.count == "some" else number == run.count
        what = f"executions of {run.machine} that end {run.status}"
        yield Check(what, passed, str(run.count), ", ".join(found) or "none")


def _metrics(expected: tuple[Any, ...], _result: StepResult, world: World) -> Iterator[Check]:
    for metric in expected:
        dimensions = measured.dimensions_of(metric, world.cluster_name)
        got = measured.read(world, metric.name, dimensions, metric.statistic)
        named = ", ".join(value for name, value in dimensions.items() if name != "Cluster")
        what = f"metric {metric.name} ({named})"
        if metric.at_least is None:
            yield equal(what, metric.value, got)
        else:
            passed = got is not None and got >= metric.at_least
            yield Check(what, passed, f"at least {metric.at_least}", str(got))


def _published(expected: tuple[str, ...], result: StepResult, _world: World) -> Iterator[Check]:
    found = [event["detail-type"] for event in result.published]
    for detail_type in expected:
        yield Check(f"event {detail_type!r}", detail_type in found, detail_type, ", ".join(found) or "none")


def _notices(expected: tuple[str, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for text in expected:
        passed = any(text in notice for notice in result.notices)
        yield Check(f"a notice says {text!r}", passed, text, f"{len(result.notices)} notices")


def _team_notices(expected: tuple[TeamNoticeCheck, ...], result: StepResult, _world: World) -> Iterator[Check]:
    for notice in expected:
        said = [text for topic, text in result.team_notices if topic == notice.topic]
        if not notice.says:
            yield equal(f"messages on {notice.topic}", "none", "; ".join(said) or "none")
        for text in notice.says:
            shown = "; ".join(said) or "nothing"
            yield Check(f"{notice.topic} gets {text!r}", any(text in message for message in said), text, shown)


def _dead_letters(expected: int | None, _result: StepResult, world: World) -> Iterator[Check]:
    yield equal("messages in the dead-letter queue", expected, world.dead_letters())


def _ignored(expected: int | None, result: StepResult, _world: World) -> Iterator[Check]:
    received = [invocation for invocation in result.invocations if invocation.function == "ReceiveEventFunction"]
    lines = [json.loads(line) for invocation in received for line in invocation.log if line.startswith("{")]
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
    wanted = [(lease.to, lease.donor, lease.count, lease.state) for lease in expected or ()]
    found = [(lease.borrower, lease.donor, lease.count, lease.state.value) for lease in result.leases]
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
        "new": (expected.new, [finding for finding in data["findings"] if finding["isNew"]]),
        "gone": (expected.gone, data["trend"]["resolved"]),
    }
    for what, (wanted, found) in apart.items():
        if wanted is not None:
            yield equal(f"findings that are {what}", sorted(wanted), sorted({finding["code"] for finding in found}))
    remedied = sorted({finding["code"] for finding in data["findings"] if finding["plan"]})
    for code in expected.remedied:
        yield Check(f"a plan remedies {code}", code in remedied, code, ", ".join(remedied) or "none")
    page = report["html"].decode()
    for text in expected.shows:
        yield Check(f"the report shows {text!r}", text in page, text, f"a page of {len(page)} characters")


CHECKS: Mapping[str, Callable[[Any, StepResult, World], Iterator[Check]]] = {
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
"""How members of `Expectations` are checked."""
