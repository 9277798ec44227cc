"""How much work is it to say who may be preempted next?"""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest.mock import Mock

from taskgov.allocation.projection import model_of
from taskgov.kueue.named import named as named_in
from taskgov.scheduling import fair_preemption
from taskgov.scheduling.fair_targets import Line
from taskgov_explain import find
from taskgov_explain.risk import risks_of
from tests.support.lab import Lab

if TYPE_CHECKING:
    import pytest

    from taskgov.snapshot.model import Snapshot


def one_borrower(lenders: int) -> Snapshot:
    """One job runs on what all the others lend, and another one waits."""
    lab = Lab().team("borrower", 1, borrow=10_000).machines(1 + lenders)
    for number in range(lenders):
        lab.team(f"lender-{number}", 1)
    lab.submit("borrower", "runs", pods=1 + lenders, ago=50)
    return lab.submit("borrower", "waits", ago=40).snapshot()


def test_each_workload_is_named_once_however_many_lend(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot, named = one_borrower(4), Mock(side_effect=named_in)
    monkeypatch.setattr(find, "named", named)
    found = risks_of(snapshot, model_of(snapshot))
    assert {each.lender for each in found} == {f"lender-{number}" for number in range(4)}
    assert named.call_count == len(snapshot.kueue.workloads)


def test_of_one_workload_only_its_own_places_are_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = one_borrower(3)
    world = model_of(snapshot)
    running, waiting = (next(key for key in world.workloads() if name in key) for name in ("runs", "waits"))
    assert risks_of(snapshot, world, running) == risks_of(snapshot, world)
    monkeypatch.setattr(type(world), "victims_of_each", None)
    assert risks_of(snapshot, world, waiting) == ()


def test_lenders_of_one_cohort_share_what_is_found_out_about_borrowers(monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = one_borrower(4)
    world = model_of(snapshot)
    listed = Mock(side_effect=Line)
    monkeypatch.setattr(fair_preemption, "Line", listed)
    assert len(risks_of(snapshot, world)) == 4
    assert listed.call_count == 1
