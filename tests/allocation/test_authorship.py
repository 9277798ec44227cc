"""Who is behind the document: when a plan needs an approver, and whose approval counts."""

from dataclasses import replace

import pytest

from taskgov.allocation.authorship import author_verdicts, may_approve
from taskgov.contracts.steps import PlanQuotasRequest
from taskgov.services.plan_quotas import PlanQuotas
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json
from taskgov.snapshot.model import ClusterFacts, Snapshot
from taskgov.snapshot.records import Authorship
from tests.support.memory import CLUSTER_ARN, NOON, InMemoryDocuments

ANA, BEN = "arn:aws:iam::111122223333:user/ana", "arn:aws:iam::111122223333:user/ben"
SNAPSHOT = Snapshot(ClusterFacts("ml-cluster", CLUSTER_ARN), NOON, policy_version="v7")
BEHIND = {
    "somebody put it into force": (Authorship(author=ANA), True, f"{ANA} put the document into force."),
    "somebody accepted it": (
        Authorship(accepted_by=BEN),
        True,
        f"The author of the document is not known; {BEN} accepted it.",
    ),
    "nobody is known": (Authorship(), False, "Who wrote version v7 of the document is not known"),
}


@pytest.mark.parametrize(("behind", "passed", "because"), BEHIND.values(), ids=BEHIND)
def test_a_document_of_an_unknown_author_waits_for_a_person(behind: Authorship, passed: bool, because: str) -> None:
    (verdict,) = author_verdicts(replace(SNAPSHOT, authorship=behind))
    assert (verdict.guardrail, verdict.passed) == ("approval", passed)
    assert verdict.because.startswith(because)
    assert ("taskgov apply --policy" in verdict.remedy) is not passed


def test_without_a_document_nobody_has_to_be_known() -> None:
    assert list(author_verdicts(replace(SNAPSHOT, policy_version=None))) == []


APPROVERS = {
    "another person": (BEN, ANA, True),
    "the author": (ANA, ANA, False),
    "the author by another name": ("identity-center/ana", ANA, False),
    "anybody, where the author is not known": (ANA, None, True),
    "nobody": (None, ANA, False),
    "nobody, where the author is not known": (None, None, False),
}


@pytest.mark.parametrize(("approver", "author", "want"), APPROVERS.values(), ids=APPROVERS)
def test_whose_approval_counts(approver: str | None, author: str | None, want: bool) -> None:
    assert may_approve(approver, Authorship(author=author)) is want


def test_who_is_behind_the_document_travels_with_the_snapshot() -> None:
    snapshot = replace(SNAPSHOT, authorship=Authorship(author=ANA))
    assert snapshot_from_json(snapshot_to_json(snapshot)) == snapshot


def test_the_text_of_the_state_machine_switches_it_on() -> None:
    documents = InMemoryDocuments()
    pointer = documents.put("snapshots/x.json", snapshot_to_json(SNAPSHOT), "application/json").to_json()
    request = PlanQuotasRequest.parse({"snapshot": pointer, "needsApprover": "true", "approvedBy": None})
    assert request.needs_approver is True
    assert PlanQuotas(documents)(request).outcome == "nothing-to-do"
