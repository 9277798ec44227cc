"""Judge one cluster: everything a person should look at, from the same model that plans.

`audit_cluster` calls it each night, `taskgov audit` at any time. The plan's own findings come along, so that one list
says everything. The codes, with their meaning and remedy, are listed in `docs/findings.md`.
"""

from collections.abc import Iterable, Sequence

from taskgov.allocation.plan import Plan
from taskgov.audit.findings_quota import quota_findings
from taskgov.audit.findings_work import work_findings
from taskgov.findings import Finding
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.snapshot.model import Snapshot
from taskgov.usage.workloads import Preemption


def audit(
    snapshot: Snapshot,
    plan: Plan,
    history: Sequence[Preemption] = (),
    *,
    instance_types: InstanceTypeTable | None = None,
) -> tuple[Finding, ...]:
    """Return all findings about a cluster, each once (see `Finding.identity`), in a fixed order.

    `plan` is the plan of this snapshot; `history` are preemptions of the last days, for loops that one look cannot see.
    """
    table = instance_types or snapshot.instance_types
    found = (*plan.findings, *quota_findings(snapshot, plan, table), *work_findings(snapshot, history))
    return tuple(_once(found))


def _once(findings: Iterable[Finding]) -> Iterable[Finding]:
    seen: set[str] = set()
    for finding in findings:
        if finding.identity not in seen:
            seen.add(finding.identity)
            yield finding
