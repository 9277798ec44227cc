"""What is wrong with the work: who starves, who hoards, what can never run, what is thrown out again and again."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Final

from taskgov.allocation.loops import search_loop
from taskgov.findings import Evidence, Finding
from taskgov.findings.of_audit import (
    EVICTION_LOOP,
    HOARDING,
    IDLE_QUOTA,
    LOOPS_NOT_SEARCHED,
    OVER_QUOTA,
    PREEMPTION_LOOP,
    STARVED,
)
from taskgov.hyperpod.borrowing import sharing_of
from taskgov.hyperpod.model import SharingStrategy
from taskgov.kueue.named import named
from taskgov.quantities import is_accelerator
from taskgov.snapshot.model import Snapshot
from taskgov.usage.never_fits import never_fits
from taskgov.usage.quota_usage import QuotaUsage, usage_in
from taskgov.usage.starved import starved_teams
from taskgov.usage.workloads import TeamPending, pending_by_team

IDLE_AFTER: Final = timedelta(hours=168)
"""How long quota must have been unused to be called idle."""
LOOP: Final = 3
"""Evictions of one workload that make a loop."""


def work_findings(snapshot: Snapshot) -> Iterable[Finding]:
    """Return the findings about use, waiting work and evictions."""
    usage = usage_in(snapshot.kueue).lines
    accelerators = [line for line in usage if is_accelerator(line.resource)]
    pending = {work.team: work for work in pending_by_team(snapshot.kueue)}
    yield from _starved(snapshot)
    yield from _hoarded(snapshot, accelerators, pending)
    yield from _over_quota(accelerators)
    yield from _idle(snapshot)
    yield from never_fits(snapshot)
    yield from _loops(snapshot)


def _starved(snapshot: Snapshot) -> Iterable[Finding]:
    """Report teams whose work waits, with guarantee unused, while others borrow what they could reclaim."""
    for starved in starved_teams(snapshot):
        yield STARVED.about(
            starved.team,
            {"reclaimable": starved.reclaimable, "instanceType": starved.instance_type},
            team=starved.team,
            waiting=starved.waiting,
            own_use=starved.own_use,
            guaranteed=starved.guaranteed,
            instance_type=starved.instance_type,
            borrowed=starved.borrowed,
            reclaimable=starved.reclaimable,
        )


def _hoarded(snapshot: Snapshot, lines: Iterable[QuotaUsage], pending: Mapping[str, TeamPending]) -> Iterable[Finding]:
    """Report teams that lend nothing and leave quota unused while others wait."""
    closed = {
        quota.compute_quota_target.team_name
        for quota in snapshot.quotas
        if sharing_of(quota.compute_quota_config).strategy is SharingStrategy.DONT_LEND
    }
    waiting = [team for team, work in sorted(pending.items()) if work.accelerators]
    for line in lines:
        if line.team not in closed or line.idle <= 0:
            continue
        if others := [team for team in waiting if team != line.team]:
            yield HOARDING.about(
                line.team,
                {"idle": line.idle, "instanceType": line.instance_type},
                team=line.team,
                idle=line.idle,
                guaranteed=line.guaranteed,
                instance_type=line.instance_type,
                waiting=", ".join(others),
            )


def _over_quota(lines: Iterable[QuotaUsage]) -> Iterable[Finding]:
    for line in lines:
        if line.over_quota > 0:
            yield OVER_QUOTA.about(
                line.team,
                {"overQuota": line.over_quota, "instanceType": line.instance_type},
                team=line.team,
                used=line.used,
                instance_type=line.instance_type,
                over_quota=line.over_quota,
                guaranteed=line.guaranteed,
            )


def _idle(snapshot: Snapshot) -> Iterable[Finding]:
    """Report whole instances that a team has and did not use at any moment of a week."""
    held = {
        (quota.compute_quota_target.team_name, row.instance_type): row.count
        for quota in snapshot.quotas
        for row in quota.compute_quota_config.compute_quota_resources
        if row.count
    }
    pool = snapshot.policy.shared_pool if snapshot.policy else None
    for use in sorted(snapshot.observed_use, key=lambda use: (use.team, use.instance_type)):
        count = held.get((use.team, use.instance_type), 0)
        idle = int(count - use.peak_instances)
        if idle > 0 and use.hours >= IDLE_AFTER / timedelta(hours=1) and use.team != (pool and pool.team):
            yield IDLE_QUOTA.about(
                use.team,
                {"idle": idle, "instanceType": use.instance_type},
                team=use.team,
                peak=use.peak_instances,
                count=count,
                instance_type=use.instance_type,
                hours=use.hours,
                idle=idle,
            )


def _loops(snapshot: Snapshot) -> Iterable[Finding]:
    """Report workloads that were evicted again and again, by Kueue's own count."""
    seen: Counter[tuple[str, str]] = Counter()
    reasons: dict[tuple[str, str], set[str]] = {}
    for item in snapshot.kueue.workloads:
        its = named(item)
        key = (its.shown, its.key)
        for eviction in ((item.get("status") or {}).get("schedulingStats") or {}).get("evictions") or ():
            seen[key] = max(seen[key], int(eviction.get("count", 0)))
            reasons.setdefault(key, set()).add(str(eviction.get("reason", "")))
    for key, times in sorted(seen.items()):
        if times >= LOOP:
            why, task = ", ".join(sorted(reasons[key])), key[0]
            evidence: Evidence = {"times": times, "reasons": why}
            yield EVICTION_LOOP.about(task, evidence, workload=task, times=times, reasons=why)


def loop_findings(snapshot: Snapshot) -> Iterable[Finding]:
    """Report the loop of preemptions that the scheduling model predicts, with the settings that end it there.

    Where the search ends without an answer, that is reported.
    """
    search = search_loop(snapshot)
    if search.steps:
        evidence: Evidence = {"steps": search.steps}
        yield LOOPS_NOT_SEARCHED.about(snapshot.cluster.name, evidence, steps=f"{search.steps:,}")
    loop = search.loop
    if loop is not None:
        workloads, preemptors, teams = map(", ".join, (loop.workloads, loop.preemptors, loop.teams))
        evidence = {
            "workloads": workloads,
            "preemptors": preemptors,
            "teams": teams,
            "remedies": len(loop.remedies),
            "trials": loop.trials,
        }
        yield PREEMPTION_LOOP.about(
            snapshot.cluster.name,
            evidence,
            workloads=workloads,
            preemptors=preemptors,
            teams=teams,
            advice=loop.advice,
        )
