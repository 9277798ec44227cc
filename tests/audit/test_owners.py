"""Whose a finding is."""

import pytest

from taskgov.audit.owners import known_teams, owners_of
from taskgov.findings import Finding, Severity
from tests.allocation.world import document, fixed, nodes, quota, row, snapshot

TEAMS = frozenset({"team-a", "team-b"})
OWNERS = {
    "a team": ("team-a", {}, ("team-a",)),
    "both teams of a lease": ("team-b -> team-a", {}, ("team-a", "team-b")),
    "a lease from the shared pool": ("shared-pool -> team-a", {}, ("team-a",)),
    "a workload by its namespace": ("hyperpod-ns-team-b/train", {}, ("team-b",)),
    "a place in the document that names a team": ("teams[1].quota", {"team": "team-b"}, ("team-b",)),
    "the end of machines that costs two teams something": ("spring", {"teams": "team-a, team-b"}, ("team-a", "team-b")),
    "the end of machines that costs nobody anything": ("spring", {"teams": ""}, ()),
    "an instance type is nobody's": ("ml.g5.8xlarge", {}, ()),
    "a team that nobody knows": ("team-c", {}, ()),
    "a name that only begins like a team": ("team-a-policy", {}, ()),
}


@pytest.mark.parametrize(("subject", "evidence", "want"), OWNERS.values(), ids=OWNERS.keys())
def test_the_owner_is(subject: str, evidence: dict[str, str], want: tuple[str, ...]) -> None:
    assert owners_of(Finding("code", Severity.INFO, subject, "b", "r", evidence), TEAMS) == want


def test_teams_are_those_of_the_document_and_those_with_a_quota_and_not_the_pool() -> None:
    world = snapshot(document(fixed("team-a", row(Count=1))), nodes(2), [quota("shared-pool"), quota("team-z")])
    assert known_teams(world) == {"team-a", "team-z"}
