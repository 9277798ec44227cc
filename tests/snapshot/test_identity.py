"""Whose state the records are: table, bucket and cluster compared."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from taskgov.snapshot.identity import (
    LATE,
    SILENT,
    BucketStamp,
    Claim,
    Loss,
    RestoredState,
    StateStamp,
    both_behind,
    claims_of,
    loss_of,
    next_stamp,
)

NOON = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
STAMP = StateStamp("own", 7, NOON)
BEFORE = replace(STAMP, serial=6, at=NOON - timedelta(hours=1))
LONG_BEFORE = replace(STAMP, serial=5, at=NOON - timedelta(hours=2))
FIRST = replace(STAMP, serial=1)
OTHER = replace(STAMP, lineage="other")


@pytest.mark.parametrize(
    ("table", "bucket", "loss"),
    [
        pytest.param(None, None, None, id="the first look of all, or the first after an upgrade"),
        pytest.param(STAMP, STAMP, None, id="as the last look left them"),
        pytest.param(STAMP, BEFORE, None, id="a look was cut short between the two"),
        pytest.param(FIRST, None, None, id="the very first look was cut short between the two"),
        pytest.param(STAMP, replace(LONG_BEFORE, at=NOON - LATE), None, id="a write to the bucket arrived late"),
        pytest.param(BEFORE, STAMP, Loss.TABLE_BEHIND, id="the table is out of a backup"),
        pytest.param(None, STAMP, Loss.TABLE_EMPTY, id="the table is empty"),
        pytest.param(OTHER, STAMP, Loss.TABLE_FOREIGN, id="the table is another stack's"),
        pytest.param(STAMP, LONG_BEFORE, Loss.BUCKET_BEHIND, id="the bucket is out of a backup"),
        pytest.param(STAMP, None, Loss.BUCKET_EMPTY, id="the bucket is empty"),
    ],
)
def test_what_was_lost_shows_in_the_two_stamps(
    table: StateStamp | None, bucket: StateStamp | None, loss: Loss | None
) -> None:
    found = loss_of(table, bucket)
    assert (found[0] if found else None) == loss


MINE, ELDER = Claim("own", NOON), Claim("elder", NOON - timedelta(days=1))
NEW = replace(STAMP, restored=RestoredState(Loss.NEW_STACK, NOON, "elder has tagged the cluster"))


@pytest.mark.parametrize(
    ("stamp", "claims", "is_new"),
    [
        pytest.param(None, (ELDER,), True, id="neither table nor bucket knows the cluster"),
        pytest.param(STAMP, (ELDER, MINE), True, id="another governs"),
        pytest.param(NEW, (), True, id="handed over, and not marked yet"),
        pytest.param(NEW, (MINE,), False, id="it governs now"),
        pytest.param(STAMP, (), False, id="it never met another"),
        pytest.param(
            STAMP, (Claim("elder", NOON), Claim("own", NOON + timedelta(days=1)))[::-1], False, id="it is older"
        ),
    ],
)
def test_what_another_stack_writes_is_not_on_record_here(
    stamp: StateStamp | None, claims: tuple[Claim, ...], is_new: bool
) -> None:
    found = loss_of(stamp, stamp, claims)
    assert (found is not None and found[0] is Loss.NEW_STACK) is is_new


def test_quotas_that_changed_unexplained_since_a_look_of_long_ago_say_that_both_are_older() -> None:
    later = NOON + SILENT + timedelta(minutes=1)
    found = both_behind(STAMP, ["team-a-quota"], later)
    assert found is not None
    assert found[0] is Loss.BOTH_BEHIND
    assert both_behind(STAMP, [], later) is None
    assert both_behind(STAMP, ["team-a-quota"], NOON + SILENT) is None


@pytest.mark.parametrize(
    ("table", "bucket", "wanted"),
    [
        pytest.param(None, None, ("new", 1), id="the first"),
        pytest.param(STAMP, STAMP, ("own", 8), id="the next"),
        pytest.param(STAMP, BEFORE, ("own", 7), id="tried again: no further ahead"),
        pytest.param(BEFORE, STAMP, ("own", 8), id="ahead of what the bucket has seen"),
        pytest.param(OTHER, STAMP, ("own", 8), id="the lineage that the cluster is tagged with"),
        pytest.param(None, STAMP, ("own", 8), id="goes on in an empty table"),
        pytest.param(STAMP, None, ("own", 8), id="goes on in an empty bucket"),
        pytest.param(STAMP, LONG_BEFORE, ("own", 8), id="ahead of what the table has seen"),
    ],
)
def test_the_next_stamp_is_ahead_of_both(
    table: StateStamp | None, bucket: StateStamp | None, wanted: tuple[str, int]
) -> None:
    stamp = next_stamp(table, bucket, "new", NOON)
    assert (stamp.lineage, stamp.serial) == wanted


def test_a_stamp_of_the_bucket_comes_back_as_it_was() -> None:
    stamp = BucketStamp(STAMP, "snapshots/ml-cluster/run-1-1.json", "abc")
    assert BucketStamp.from_json(stamp.to_json()) == stamp


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 1, "serial": {}}', b"\xff"])
def test_a_damaged_stamp_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        BucketStamp.from_json(text)


def test_the_oldest_mark_governs_and_ties_go_by_lineage() -> None:
    tags = {"taskgov:stack:b": NOON.isoformat(), "taskgov:stack:a": NOON.isoformat(), "owner": "ml-platform"}
    assert [claim.lineage for claim in claims_of(tags)] == ["a", "b"]


def test_a_mark_that_cannot_be_read_governs_so_that_nobody_writes() -> None:
    tags = {"taskgov:stack:a": NOON.isoformat(), "taskgov:stack:b": "some day"}
    assert claims_of(tags)[0].lineage == "b"
