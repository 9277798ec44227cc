"""The dominant resource share."""

from __future__ import annotations

from typing import Any

import pytest

from taskgov.quantities import UNLIMITED
from taskgov.scheduling import KueueModel, Share
from taskgov.scheduling.shares import share_of
from tests.scheduling.builders import a_cohort, a_queue, a_running_job, a_world


def _pool(weight: str | None = None) -> KueueModel:
    spec: dict[str, Any] = {} if weight is None else {"fairSharing": {"weight": weight}}
    return a_world(a_queue("a", cohort="pool", cpu="2", **spec), a_queue("b", cohort="pool", cpu="8"))


def test_within_its_quota_a_queue_has_no_share() -> None:
    assert _pool().share("a", extra={"gpu/cpu": 2_000}) == Share(0.0, 1.0, "", borrowing=False)


@pytest.mark.parametrize(
    ("weight", "weighted"),
    [(None, 300), ("2", 150), ("0.5", 600), ("7", 43), ("0", UNLIMITED)],
    ids=["default weight", "2", "one half", "rounded up", "weight 0 is infinite"],
)
def test_the_share_is_what_is_borrowed_of_what_can_be_lent_by_weight(weight: str | None, weighted: int) -> None:
    share = _pool(weight).share("a", extra={"gpu/cpu": 5_000})
    assert (share.weighted, share.dominant, share.borrowing) == (weighted, "cpu", True)


def test_the_most_borrowed_resource_counts_and_a_tie_goes_to_the_first_name() -> None:
    quota = {"gpu": {"cpu": "0", "memory": "0", "disk": "0"}}
    lent = {"gpu": {"cpu": "10", "memory": "100", "disk": "10"}}
    world = a_world(a_queue("a", cohort="pool", flavors=quota), a_queue("b", cohort="pool", flavors=lent))
    assert world.share("a", extra={"gpu/cpu": 1_000, "gpu/memory": 50, "gpu/disk": 1}).dominant == "memory"
    assert world.share("a", extra={"gpu/cpu": 1_000, "gpu/disk": 1}).dominant == "cpu"


def test_borrowing_what_nobody_can_lend_is_borrowing_without_a_share() -> None:
    world = a_world(a_queue("a", cohort="pool", cpu="0"), a_running_job("one", "a", cpu="1"))
    share = world.share("a")
    assert (share.ratio, share.borrowing, share.weighted) == (0.0, True, 0)


def test_a_root_has_no_share_and_a_child_cohort_has_one() -> None:
    world = a_world(
        a_cohort("left", "root"),
        a_cohort("right", "root"),
        a_queue("a", cohort="left", cpu="1"),
        a_queue("b", cohort="right", cpu="9"),
        a_running_job("one", "a", cpu="6"),
    )
    assert world.share("root", cohort=True).weighted == 0
    assert world.share("left", cohort=True).weighted == 500
    assert world.cohort("left")["status"]["fairSharing"]["weightedShare"] == 500


def test_borrowers_without_weight_rank_behind_all_others_and_by_ratio_among_themselves() -> None:
    greedy, modest = share_of(100.0, 0.0, "cpu", borrowing=True), share_of(900.0, 1.0, "cpu", borrowing=True)
    assert greedy.rank > modest.rank
    assert share_of(200.0, 0.0).rank > greedy.rank
    assert share_of(0.0, 0.0).rank == share_of(0.0, 1.0).rank
