"""Which findings would the plan remedy? Those that are gone when the cluster is judged again as the plan leaves it.

Called for the report. Quotas, cluster policy and their queues are as the plan writes them; nodes and work are as they
are: the effect on work is the plan's own prediction, and no finding counts as remedied by it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

from taskgov.allocation.plan import Change, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.projection import after
from taskgov.audit.findings import audit
from taskgov.audit.findings_work import loop_findings
from taskgov.findings import Finding
from taskgov.findings.of_audit import EVICTION_LOOP, LOOPS_NOT_SEARCHED, PREEMPTION_LOOP, REQUEST_NEVER_FITS
from taskgov.snapshot.model import Snapshot
from taskgov.usage.workload_facts import facts_in, with_facts_alone

OF_WORKLOADS: Final = frozenset({REQUEST_NEVER_FITS.code, EVICTION_LOOP.code})
"""Findings that follow from workloads and nodes alone: no quota remedies them."""


@dataclass(frozen=True, slots=True)
class PlanEffect:
    """A finding that the plan would remedy, and the changes of the plan that are about its subject (else all)."""

    code: str
    subject: str
    plan_id: str
    changes: tuple[int, ...]
    """Places in the plan, from 1; both, where a quota is written twice."""
    identity: str = ""
    """The finding's: a team may have one of this code on each of several instance types."""


class NotSupposedError(Exception):
    """A plan names what the snapshot does not have, or a queue of it cannot be made; the message says which."""


def plan_effects(snapshot: Snapshot, plan: Plan, findings: Iterable[Finding]) -> tuple[PlanEffect, ...]:
    """Return the findings that the plan would remedy, in the order in which they were given.

    Raises NotSupposedError when the cluster as the plan leaves it cannot be put together: nothing is claimed then.
    """
    if not plan.changes:
        return ()
    found = tuple(findings)
    try:
        supposed = after(snapshot, plan)
    except (KeyError, ValueError) as error:
        raise NotSupposedError(f"{type(error).__name__}: {error}") from error
    judged = replace(supposed, kueue=with_facts_alone(supposed.kueue, facts_in(snapshot.kueue)))
    left = audit(judged, plan_quotas(judged, mode="plan", digest=""), with_loops=False)
    # A search for loops costs as much as a prediction; without a loop today none can be remedied.
    loops = loop_findings(supposed) if any(map(_is_of_loops, found)) else ()
    identities = {finding.identity for finding in (*left, *loops)}
    return tuple(
        PlanEffect(finding.code, finding.subject, plan.plan_id, _about(finding, plan.changes), finding.identity)
        for finding in found
        if finding.identity not in identities and finding.code not in OF_WORKLOADS
    )


def _is_of_loops(finding: Finding) -> bool:
    return PREEMPTION_LOOP.is_of(finding) or LOOPS_NOT_SEARCHED.is_of(finding)


def _about(finding: Finding, changes: Iterable[Change]) -> tuple[int, ...]:
    own = tuple(change.index + 1 for change in changes if finding.subject in {change.team, change.name})
    return own or tuple(change.index + 1 for change in changes)
