"""Two stacks on one cluster: the older governs, the younger writes nothing."""

from datetime import timedelta

import pytest

from taskgov.errors import ConflictError
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.snapshot.identity import StateStamp
from tests.support.memory import CLUSTER_ARN, NOON, FixedClock, InMemoryState, InMemoryTags


def claim(tags: InMemoryTags, lineage: str) -> ClaimCluster:
    state = InMemoryState()
    state.record_stamp(CLUSTER_ARN, StateStamp(lineage, 1, NOON))
    return ClaimCluster(tags, state, FixedClock())


def test_the_first_stack_marks_the_cluster_once() -> None:
    tags = InMemoryTags()
    mine = claim(tags, "a")
    mine(CLUSTER_ARN)
    mine(CLUSTER_ARN)
    assert tags.stored[CLUSTER_ARN] == {"taskgov:stack:a": "2026-11-20T12:00:00+00:00"}
    assert tags.calls == ["tags", "put_tag", "tags", "tags"]


def test_a_stack_that_comes_later_neither_writes_nor_marks() -> None:
    tags = InMemoryTags()
    claim(tags, "b")(CLUSTER_ARN)
    with pytest.raises(ConflictError, match="governed by stack b"):
        claim(tags, "a")(CLUSTER_ARN)
    assert list(tags.stored[CLUSTER_ARN]) == ["taskgov:stack:b"]


@pytest.mark.parametrize(("other", "seconds", "mine_governs"), [("z", 0, True), ("a", 0, False), ("a", 1, True)])
def test_of_two_that_mark_at_the_same_time_one_continues(other: str, seconds: int, mine_governs: bool) -> None:
    since = (NOON + timedelta(seconds=seconds)).isoformat()
    tags = InMemoryTags()
    tags.beside = lambda: tags.stored[CLUSTER_ARN].update({f"taskgov:stack:{other}": since})
    try:
        claim(tags, "m")(CLUSTER_ARN)
    except ConflictError:
        assert not mine_governs
    else:
        assert mine_governs


def test_a_mark_that_is_not_seen_after_it_was_made_is_no_mark() -> None:
    tags = InMemoryTags()
    tags.beside = tags.stored.clear
    with pytest.raises(ConflictError, match="not seen yet"):
        claim(tags, "a")(CLUSTER_ARN)


def test_nothing_is_marked_before_a_run_has_looked() -> None:
    tags = InMemoryTags()
    with pytest.raises(ConflictError, match="no lineage"):
        ClaimCluster(tags, InMemoryState(), FixedClock())(CLUSTER_ARN)
    assert tags.stored == {}
