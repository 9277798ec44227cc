"""Which run is the one of a document that was put into force? Told from the records of runs."""

from collections.abc import Callable, Iterator
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


def ended(
    monkeypatch: pytest.MonkeyPatch,
    *newest_first: dict[str, Any],
    again: Callable[[], list[dict[str, Any]]] | None = None,
    seconds: float = 0,
) -> Ended | None:
    """Return what is told of these runs, without waiting for others, or of those that there are `again` and again."""
    documents, places = InMemoryDocuments(), dict[str, dict[str, str]]()
    plan = plan_quotas(Lab().team("team-a", 2).machines(2).snapshot(), mode="apply")
    for plan_id, version in ((OURS, "version-2"), (OLDER, "version-1")):
        kept = keep_plan(documents, replace(plan, plan_id=plan_id, policy_version=version))
        places[plan_id] = {"plan": kept.model_dump_json()}
    table = SimpleNamespace(get_item=lambda **_: {})

    def known(*_: Any) -> Iterator[dict[str, Any]]:
        return (each | places.get(each.get("planId", ""), {}) for each in (again() if again else newest_first))

    monkeypatch.setattr(document, "runs", known)
    return wait_for_run(cast("Deployed", SimpleNamespace(documents=documents, table=table)), WRITTEN, seconds, print)


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


def test_a_run_that_was_stopped_says_nothing_of_the_document_when_another_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped = run("stopped", OURS, 2, 12)
    assert ended(monkeypatch, run("applied", OURS, 30, 40), stopped) == Ended("applied", OURS)
    assert ended(monkeypatch, run("nothing-to-do", OURS, 30, 40), stopped) == Ended("nothing-to-do", OURS)
    assert ended(monkeypatch, run("failed", None, 30, 40), stopped) == Ended("failed")
    assert ended(monkeypatch, stopped, run("applied", OURS, 0, 1)) == Ended("applied", OURS)


def test_the_run_that_follows_one_that_was_stopped_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [[run("stopped", OURS, 2, 12)], [run("applied", OURS, 30, 40), run("stopped", OURS, 2, 12)]]
    monkeypatch.setattr("time.sleep", lambda _: looks.pop(0))
    assert ended(monkeypatch, *looks[0], again=lambda: looks[0], seconds=60) == Ended("applied", OURS)
    assert len(looks) == 1


def test_when_no_run_followed_in_time_it_says_that_the_only_one_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ended(monkeypatch, run("stopped", OURS, 2, 12)) == Ended("stopped", OURS)


def test_a_lock_that_was_freed_by_hand_is_no_run_of_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    freed = run("unlocked", None, 3, 3)
    assert ended(monkeypatch, freed) is None
    assert ended(monkeypatch, freed, run("applied", OURS, 1, 2)) == Ended("applied", OURS)
    assert ended(monkeypatch, run("nothing-to-do", OURS, 5, 6), freed) == Ended("nothing-to-do", OURS)
