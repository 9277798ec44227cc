"""Whose finding is it? The teams that can do something about it, and are notified on their own topics.

A finding names what it is about in its subject: a team, `team -> team` (a lease), a workload by its namespace. Where
the subject is a place in the policy document, the evidence names the team; where it is the end of machines, the teams
that it costs something. Findings about an instance type or the
cluster policy are the administrator's, and have no owner here.
"""

from collections.abc import Iterator

from taskgov.findings import Finding
from taskgov.hyperpod.names import team_of_namespace
from taskgov.snapshot.model import Snapshot


def known_teams(snapshot: Snapshot) -> frozenset[str]:
    """Return the teams that have a quota or stand in the policy document; the shared pool is nobody."""
    policy = snapshot.policy
    held = {quota.compute_quota_target.team_name for quota in snapshot.quotas}
    named = {team.name for team in policy.teams} if policy else set()
    pool = {policy.shared_pool.team} if policy and policy.shared_pool else set()
    return frozenset((held | named) - pool)


def owners_of(finding: Finding, teams: frozenset[str]) -> tuple[str, ...]:
    """Return the teams that a finding is about, by name."""
    return tuple(sorted({name for name in _named(finding) if name in teams}))


def _named(finding: Finding) -> Iterator[str]:
    yield from finding.subject.split(" -> ")
    namespace, slash, _ = finding.subject.partition("/")
    if slash:
        yield team_of_namespace(namespace) or namespace
    told = finding.evidence.get("team")
    if isinstance(told, str):
        yield told
    all_told = finding.evidence.get("teams")
    if isinstance(all_told, str):
        yield from all_told.split(", ")
