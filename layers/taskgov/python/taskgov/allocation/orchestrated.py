"""Find quotas that Kueue's own orchestration (0.20, alpha) sets. It takes precedence over the spec of a queue.

Such a quota is left alone. A write to the spec would only change the proportions by which the orchestrator divides, and
none of the planned numbers.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress

from taskgov.allocation.written import UNREADABLE
from taskgov.findings import Finding
from taskgov.findings.of_plan import ORCHESTRATED_ELSEWHERE
from taskgov.scheduling.reading import orchestrator_of
from taskgov.snapshot.model import Snapshot
from taskgov.usage.quota_usage import team_of

BECAUSE = "Kueue sets its quota (status.effectiveQuotas)"


def orchestrators(snapshot: Snapshot) -> Mapping[str, str]:
    """Return the teams whose ClusterQueue has effective quotas, and who sets them."""
    found = {}
    for queue in snapshot.kueue.cluster_queues:
        with suppress(*UNREADABLE):  # one that cannot be read is left alone as that
            if orchestrator := orchestrator_of(queue):
                found[team_of(queue)] = orchestrator
    return dict(sorted(found.items()))


def orchestrated_findings(snapshot: Snapshot) -> Iterable[Finding]:
    """Report each queue whose quota the orchestrator sets. Its numbers are read, and not written."""
    for team, orchestrator in orchestrators(snapshot).items():
        evidence = {"orchestrator": orchestrator}
        yield ORCHESTRATED_ELSEWHERE.about(team, evidence, team=team, orchestrator=orchestrator)
