"""Which run is the one of a document that was put into force? Told from the records of runs."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from taskgov.allocation.planner import plan_quotas
from taskgov.services.plan_quotas import keep_plan
from taskgov_cli.applying import document
from taskgov_cli.applying.document import Ended, Written, wait_for_run
from tests.support.lab import Lab
from tests.support.memory import CLUSTER_ARN, InMemoryDocuments

if TYPE_CHECKING:
    from taskgov_cli.deployed import Deployed

AT = datetime(2026, 11, 20, 9, tzinfo=UTC)
OURS, OLDER = "plan-ours", "plan-older"
WRITTEN = Written(CLUSTER_ARN, "ml-cluster", "version-2", AT)


def run(outcome: str, plan: str | None, began: int, ended: int) -> dict[str, Any]:
    """A record of a run that began and ended so many seconds after the document was stored."""
    times = {"startedAt": AT + timedelta(seconds=began), "endedAt": AT + timedelta(seconds=ended)}
    record = {name: moment.isoformat() for name, moment in times.items()} | {"outcome": outcome}
    return record if plan is None else record | {"planId": plan}


def ended(monkeypatch: pytest.MonkeyPatch, *newest_first: dict[str, Any]) -> Ended | None:
    """Return what is told of these runs, without waiting for others."""
    documents, places = InMemoryDocuments(), dict[str, dict[str, str]]()
    plan = plan_quotas(Lab().team("team-a", 2).machines(2).snapshot(), mode="apply")
    for plan_id, version in ((OURS, "version-2"), (OLDER, "version-1")):
        kept = keep_plan(documents, replace(plan, plan_id=plan_id, policy_version=version))
        places[plan_id] = {"plan": kept.model_dump_json()}
    table = SimpleNamespace(get_item=lambda **_: {})
    known = [each | places.get(each.get("planId", ""), {}) for each in newest_first]
    monkeypatch.setattr(document, "runs", lambda *_: iter(known))
    return wait_for_run(cast("Deployed", SimpleNamespace(documents=documents, table=table)), WRITTEN, 0, print)


def test_a_run_that_began_before_and_read_the_new_document_is_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, run("applied", OURS, -20, 5)) == Ended("applied", OURS)


def test_a_run_that_had_read_the_document_of_before_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, run("applied", OLDER, -20, 5)) is None


def test_a_run_that_failed_before_it_had_planned_counts_when_it_began_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert ended(monkeypatch, run("failed", None, 3, 5)) == Ended("failed")
    assert ended(monkeypatch, run("failed", None, -3, 5)) is None


def test_what_the_first_of_its_runs_did_counts_and_not_that_the_next_found_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = run("nothing-to-do", OURS, 30, 31), run("applied", OURS, 2, 12), run("applied", OLDER, -60, -30)
    assert ended(monkeypatch, *runs) == Ended("applied", OURS)
