"""What is kept of a write: what the quota was until then, and what a path came from."""

from dataclasses import replace

import pytest

from taskgov.allocation.applied_record import MOST_WEIGHT, WEIGHT_OF_ONE, bounded, known_since, remember
from taskgov.hyperpod.model import SchedulerConfig
from taskgov.snapshot.records import AppliedQuota, PastQuota
from tests.allocation.world import NOW, minutes
from tests.support.plans import instances, low_write, second_write, target, update

LEASED, DEMAND = {"ml.g5.8xlarge": 1}, {"ml.g5.8xlarge": 3}


def written(count: int) -> AppliedQuota:
    config = instances(count)
    return AppliedQuota("id-a", 1, config, target("a"), "p", NOW - minutes(9), (), leased=LEASED, demand=DEMAND)


def test_what_was_written_last_is_past_with_its_leases_and_what_demand_left() -> None:
    kept = remember(update(0, "a", "id-a", 4, 2), written(4), quota_id="id-a", version=2, plan_id="p2", now=NOW)
    assert kept.history == (PastQuota(until=NOW, config=instances(4), leased=LEASED, demand=DEMAND),)


def test_what_somebody_else_wrote_is_past_without_leases_and_with_what_it_held() -> None:
    kept = remember(update(0, "a", "id-a", 5, 2), written(4), quota_id="id-a", version=3, plan_id="p2", now=NOW)
    assert kept.history == (PastQuota(until=NOW, config=instances(5), leased=None, demand={"ml.g5.8xlarge": 5}),)


def test_a_low_write_began_from_what_stood_before_the_plan() -> None:
    low = low_write(0, "a", "id-a", 4, 1)
    kept = remember(low, None, quota_id="id-a", version=2, plan_id="p", now=NOW)
    assert kept.began_from == instances(4)
    later = replace(low, before=instances(3))
    named = remember(later, None, quota_id="id-a", version=2, plan_id="p", now=NOW, path_before=instances(4))
    assert named.began_from == instances(4)
    last = remember(second_write(1, "a", "id-a", 1, 3), kept, quota_id="id-a", version=3, plan_id="p", now=NOW)
    assert last.began_from is None
    assert [past.config for past in last.history or ()] == [instances(4)]


def test_nothing_is_kept_of_a_write_without_a_quota_or_without_a_team() -> None:
    whole = update(0, "a", "id-a", 4, 2)
    for change in (replace(whole, after=SchedulerConfig()), replace(whole, target_after=None)):
        with pytest.raises(ValueError, match="is not the change of a quota"):
            remember(change, None, quota_id="id-a", version=2, plan_id="p", now=NOW)


MOST = MOST_WEIGHT // (WEIGHT_OF_ONE + 1)
"""As many configs of one row as are kept."""


def past(*counts: int) -> tuple[PastQuota, ...]:
    """Return a past of one minute each, the newest last."""
    return tuple(PastQuota(until=NOW - minutes(len(counts) - n), config=instances(c)) for n, c in enumerate(counts))


def test_a_past_that_is_not_too_long_is_kept_as_it_is_and_known_whole() -> None:
    some = past(*(number % 3 + 1 for number in range(200)))
    assert bounded(some) is some
    assert known_since(some) is None
    assert known_since(()) is None


def test_of_a_long_past_the_same_config_is_kept_once_as_it_was_last() -> None:
    kept = bounded(past(*(number % 3 + 1 for number in range(MOST + 300))))
    assert [earlier.until for earlier in kept] == [NOW - minutes(n) for n in (3, 2, 1)]
    assert known_since(kept) is None


def test_of_a_long_past_of_different_configs_the_newest_are_kept_and_what_is_forgotten_is_said() -> None:
    whole = past(*range(1, MOST + 50))
    kept = bounded(whole)
    assert kept == whole[-MOST:]
    assert known_since(kept) == kept[0].until


def test_a_write_never_makes_a_past_too_long() -> None:
    applied = replace(written(1), history=past(*range(2, MOST + 2)))
    kept = remember(update(0, "a", "id-a", MOST + 5, 2), applied, quota_id="id-a", version=3, plan_id="p2", now=NOW)
    assert kept.history is not None
    assert len(kept.history) == MOST
    assert kept.history[-1].until == NOW
