"""Build the standing of quotas for the record of work: each team, with the leading resource of each instance type."""

from datetime import datetime

from taskgov.snapshot.model import KueueObjects
from taskgov.usage.cluster_usage import ClusterUsage
from taskgov.usage.demand import waiting_demand
from taskgov.usage.quota_usage import QuotaUsage
from taskgov.work.standing import NOTHING, Line, Place, Standing


def standing_of(usage: ClusterUsage, kueue: KueueObjects, at: datetime) -> Standing:
    """Return how quotas stand at a measurement. The queues of one team are summed into one line."""
    waiting = waiting_demand(kueue)
    lines: dict[Place, Line] = {}
    for line in (team.usage for team in usage.teams if team.leading):
        place = line.team, line.instance_type, line.resource
        asked = waiting.get((line.queue, line.instance_type, line.resource), 0)
        lines[place] = _sum(lines.get(place, NOTHING), line, asked)
    offered = {(has.instance_type, has.resource): has.healthy for has in usage.capacities}
    return Standing(
        at,
        {place: line for place, line in lines.items() if line != NOTHING},
        {kind: amount for kind, amount in offered.items() if amount},
    )


def _sum(line: Line, more: QuotaUsage, waiting: int) -> Line:
    return Line(
        guaranteed=line.guaranteed + more.guaranteed,
        used=line.used + more.used,
        borrowed=line.borrowed + more.borrowed,
        lent=line.lent + more.lent,
        over_quota=line.over_quota + more.over_quota,
        waiting=line.waiting + waiting,
    )
