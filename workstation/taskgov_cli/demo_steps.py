"""A step of a walkthrough for people: the timeline, what the plan said, teams before and after, the checks."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from rich.text import Text

from taskgov.allocation.leases import LeaseState
from taskgov.usage.amounts import words
from taskgov_cli.grid import table
from taskgov_cli.plans import OUTCOME_STYLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from taskgov.allocation.plan import Plan
    from taskgov_embedded.timeline import Moment
    from taskgov_embedded.walkthrough.step_result import Check, StepResult

TOLD = frozenset({"event", "execution", "denied", "settled"})
"""The main moments of the story; the rest is in `--json`."""
GENERATED = re.compile(r"taskgov-(\w+?)-[0-9A-F]{12}")
"""Names that CloudFormation generates."""
GPU = "nvidia.com/gpu"
_WORKLOAD = re.compile(r"^hyperpod-ns-(?P<team>[^/]+)/\w+?-(?P<job>.+)-\w{5}$")


def shown(number: int, result: StepResult) -> Iterator[RenderableType]:
    """Return what is shown of a step."""
    title, *failed = heading(number, result.title, result.checks)
    yield title
    yield from _story(result)
    if result.quotas_after:
        yield _teams(result)
    yield from failed


def heading(number: int, title: str, checks: Sequence[Check], *, of: int | None = None) -> Iterator[Text]:
    """Return the line with a step's title and how its checks came out, and one for each that failed."""
    counted = f"{number}." if of is None else f"{number}/{of}"
    failed = [check for check in checks if not check.passed]
    mark = Text(" ok ", style="green") if not failed else Text(" FAILED ", style="bold red")
    yield Text.assemble("\n", (f"{counted} {title}", "bold"), " ", mark, f"({len(checks)} checks)")
    for check in failed:
        yield Text(f"   {check.what}: wanted {check.wanted}, got {check.got}", style="red")


def _story(result: StepResult) -> Iterator[RenderableType]:
    for moment in result.moments:
        if moment.kind in TOLD and not _is_own_document(moment):
            yield Text.assemble("   ", (f"{moment.time:%H:%M:%S} ", "dim"), _sentence(moment))
    for plan in result.plans[-1:]:
        yield from _plan(plan)
    for report in result.reports[-1:]:
        yield from _audit(json.loads(report["json"]), result.team_notices)
    for cycle in result.cycles:
        for admission in cycle.admitted:
            borrowing = " (borrowing)" if admission.borrowing else ""
            yield Text(f"   admitted  {task_of(admission.workload)}{borrowing}", style="green")
        for lost in cycle.preempted:
            victim, preemptor = task_of(lost.workload), task_of(lost.preemptor)
            yield Text(f"   preempted {victim}, by {preemptor}: {lost.reason}", style="yellow")


def task_of(workload: str) -> str:
    """Return `team/job` for a Workload's name.

    >>> task_of("hyperpod-ns-speech/pytorchjob-voices-d95d8")
    'speech/voices'
    """
    found = _WORKLOAD.match(workload)
    return f"{found['team']}/{found['job']}" if found else workload


def _is_own_document(moment: Moment) -> bool:
    """Return whether it is a bucket event that no rule matches: of a snapshot, a plan, a report."""
    event = moment.detail.get("event", {})
    return event.get("source") == "aws.s3" and not event["detail"]["object"]["key"].startswith("policies/")


def _sentence(moment: Moment) -> str:
    what = GENERATED.sub(r"\1", moment.what)
    return f"{moment.kind:<10} {what}{_told_by(moment.detail.get('event', {}).get('detail', {}))}"


def _told_by(detail: dict[str, Any]) -> str:
    """Return what an event is about: the call and its caller, the document, the instance."""
    if "eventName" in detail:
        who = detail["userIdentity"]
        role = who.get("sessionContext", {}).get("sessionIssuer", {}).get("arn", who.get("arn", ""))
        caller = GENERATED.sub(r"\1", role.rsplit("/", 1)[-1])
        return f" ({detail['eventName']} by {caller})"
    about = detail.get("object", {}).get("key") or detail.get("InstanceId")
    return f" ({about})" if about else ""


def _plan(plan: Plan) -> Iterator[RenderableType]:
    yield Text.assemble("   plan      ", (plan.outcome.value, OUTCOME_STYLE[plan.outcome]))
    for change in plan.changes:
        yield Text(f"     {change.index + 1}. {change.team or change.name}: {change.because}")
    for finding in plan.findings:
        yield Text(f"     {finding.severity.value}: {finding.subject}: {finding.because}", style="dim")


def _audit(report: dict[str, Any], told: Sequence[tuple[str, str]]) -> Iterator[RenderableType]:
    """Return what an audit found, what is muted, new or gone, and which topics of teams were notified."""
    yield Text(f"   audit     {len(report['findings'])} findings, {len(report['muted'])} muted")
    for finding in report["findings"]:
        new = " (new)" if finding["isNew"] else ""
        plan = f", remedied by {finding['plan']['planId']}" if finding["plan"] else ""
        yield Text(f"     {finding['severity']}: {finding['subject']} {finding['code']}{new}{plan}", style="dim")
    for finding in report["muted"]:
        yield Text(f"     muted: {finding['subject']} {finding['code']}: {finding['muted']['reason']}", style="dim")
    for finding in report["trend"]["resolved"]:
        yield Text(f"     gone: {finding['subject']} {finding['code']}", style="dim")
    for topic, text in told:
        yield Text(f"     sent to {topic}: {text.splitlines()[0]}", style="dim")


def _teams(result: StepResult) -> RenderableType:
    """Return one line a team: its quota before and after, its accelerators (or cpu) in use and beyond quota."""
    teams = sorted(result.quotas_before.keys() | result.quotas_after.keys())
    rows = [
        (
            team,
            _quota(result.quotas_before.get(team, ())),
            "; ".join([_quota(result.quotas_after.get(team, ())), *_leases(result, team)]),
            *used(result, team),
            ", ".join(jobs(result, team)),
        )
        for team in teams
    ]
    return table("", ("   team", "quota before", "quota after", "used #", "beyond quota #", "jobs"), _indented(rows))


def _indented(rows: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [(f"   {first}", *rest) for first, *rest in rows]


def _quota(resources: tuple[dict[str, Any], ...]) -> str:
    return ", ".join(
        f"{row['InstanceType']} " + " ".join(f"{name} {value:g}" for name, value in _amounts(row)) for row in resources
    )


def _leases(result: StepResult, team: str) -> list[str]:
    held = (
        lease for lease in result.leases if lease.state is LeaseState.ACTIVE and team in {lease.borrower, lease.donor}
    )
    return [lease.said_to(team) for lease in held]


def _amounts(resource: dict[str, Any]) -> list[tuple[str, float]]:
    return [(name, value) for name, value in resource.items() if isinstance(value, int | float) and value]


def used(result: StepResult, team: str) -> tuple[str, str]:
    """Return used accelerators and those beyond quota, flavor by flavor; cpu where a flavor has no accelerators.

    The ClusterQueue's status calls all that is beyond quota `borrowed`, also what a lowered quota leaves over.
    """
    used, beyond = [], []
    for resources in result.usage_after.get(team, {}).values():
        name = GPU if resources.get(GPU, ("0", "0"))[0] != "0" else "cpu"
        total, excess = resources.get(name, ("0", "0"))
        if total != "0":
            used.append(words(name, int(total)) if name == GPU else f"{total} cpu")
            beyond.append(excess)
    return ", ".join(used), ", ".join(beyond)


def jobs(result: StepResult, team: str) -> list[str]:
    """Return the jobs of a team with their states."""
    return [
        f"{name.partition('/')[2]} {state}" for name, state in result.jobs_after.items() if name.split("/")[0] == team
    ]


def metrics_table(series: list[tuple[str, dict[str, str], float]]) -> RenderableType:
    """Return metric values as CloudWatch has them at the end."""
    rows = [
        (name, ", ".join(f"{key}={value}" for key, value in at.items() if key != "Cluster"), f"{value:g}")
        for name, at, value in series
    ]
    return table("\nCloudWatch, namespace TaskGovernance, newest values", ("metric", "dimensions", "value #"), rows)
