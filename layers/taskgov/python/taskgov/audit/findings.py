"""Judge one cluster: everything a person should examine, from the same model that plans.

`audit_cluster` calls it each night, `taskgov audit` at any time. The plan's own findings come along, so that one list
says everything. The codes, with their meaning and remedy, are listed in `docs/findings.md`.
"""

from collections.abc import Iterable

from taskgov.allocation.plan import Plan
from taskgov.audit.findings_quota import quota_findings
from taskgov.audit.findings_work import loop_findings, work_findings
from taskgov.findings import Finding
from taskgov.snapshot.model import Snapshot


def audit(snapshot: Snapshot, plan: Plan, *, with_loops: bool = True) -> tuple[Finding, ...]:
    """Return all findings about a cluster, each once (see `Finding.identity`), in a fixed order.

    `plan` is the plan of this snapshot. `with_loops` also searches for work that would preempt itself forever.
    """
    loops = loop_findings(snapshot) if with_loops else ()
    return tuple(_once((*plan.findings, *quota_findings(snapshot, plan), *work_findings(snapshot), *loops)))


def _once(findings: Iterable[Finding]) -> Iterable[Finding]:
    seen: set[str] = set()
    for finding in findings:
        if finding.identity not in seen:
            seen.add(finding.identity)
            yield finding
