"""The record of work, as it is written and read."""

import gzip
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.errors import InvalidRequestError
from taskgov.ports.work import WorkDone, WorkRecord
from taskgov.services.work_record import RecordedWork
from taskgov.work import day as days
from taskgov.work import memory
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.day import Day, from_bytes, to_bytes
from taskgov.work.measured import Span, union
from taskgov.work.memory import Tracked, WorkMemory
from taskgov.work.standing import Line, Standing, whole_ones
from tests.support.memory import InMemoryDocuments

GPU = "nvidia.com/gpu"
G5 = "ml.g5.12xlarge"
MIDNIGHT = datetime(2026, 11, 20, tzinfo=UTC)
NOON = MIDNIGHT + timedelta(hours=12)
MINUTE = timedelta(minutes=1)


def an_attempt(uid: str = "u-1", **more: object) -> Attempt:
    given: dict[str, object] = {
        "uid": uid,
        "number": 1,
        "team": "team-a",
        "owner": "ana",
        "stem": "train",
        "kind": "PyTorchJob",
        "priority_class": "training",
        "priority": 70,
        "held": (Held(G5, GPU, 8),),
        "max_seconds": 7200,
        "created": NOON,
        "queued": NOON,
        "admitted": NOON + MINUTE,
    }
    return Attempt(**{**given, **more})  # type: ignore[arg-type]


def ended(uid: str = "u-1", at: datetime = NOON + 30 * MINUTE, **more: object) -> Attempt:
    return an_attempt(uid, **{"ended": at, "end": End.FINISHED, "reason": "Succeeded", **more})


A_DAY = Day(
    attempts=(
        ended(),
        ended("u-2", owner=None, priority_class=None, max_seconds=None, held=(), admitted=None, inferred=("ended",)),
    ),
    measured=(Span(NOON, NOON + MINUTE),),
    standings=(
        Standing(NOON, {("team-a", G5, GPU): Line(8, 10, 2, 0, 0, 4)}, {(G5, GPU): 16}),
        Standing(NOON + MINUTE, {("team-a", G5, GPU): Line()}, whole=False),
    ),
)


def test_a_day_is_read_as_it_was_written() -> None:
    assert from_bytes(to_bytes(A_DAY, NOON.date())) == A_DAY
    assert to_bytes(A_DAY, NOON.date()) == to_bytes(A_DAY, NOON.date())


@pytest.mark.parametrize("damage", [b"", b"no gzip", to_bytes(A_DAY, NOON.date())[:-9]], ids=len)
def test_a_damaged_day_is_refused_with_its_name(damage: bytes) -> None:
    record = RecordedWork(InMemoryDocuments({"work/ml-cluster/2026-11-20.jsonl.gz": damage}))
    with pytest.raises(InvalidRequestError, match=r"work/ml-cluster/2026-11-20\.jsonl\.gz cannot be read"):
        record.between("ml-cluster", MIDNIGHT, NOON)


def test_what_is_added_twice_is_there_once() -> None:
    assert A_DAY.with_(A_DAY) == A_DAY == Day().with_(A_DAY) == A_DAY.with_(Day())


@pytest.mark.parametrize("turn", [1, -1])
def test_of_two_records_of_an_attempt_the_one_that_concludes_less_counts(turn: int) -> None:
    poor, rich = ended(admitted=None, inferred=("queued",)), ended()
    first, second = (poor, rich)[::turn]
    assert Day((first,)).with_(Day((second,))).attempts == (rich,)


def test_it_is_cut_at_midnight() -> None:
    night = MIDNIGHT + timedelta(days=1)
    part = Day(
        attempts=(ended(at=night - MINUTE), ended("u-2", at=night)),
        measured=(Span(night - 5 * MINUTE, night + 3 * MINUTE),),
        standings=(Standing(night - 5 * MINUTE), Standing(night)),
    )
    cut = part.by_day()
    assert {day: [one.uid for one in each.attempts] for day, each in cut.items()} == {
        date(2026, 11, 20): ["u-1"],
        date(2026, 11, 21): ["u-2"],
    }
    assert [span.seconds for each in cut.values() for span in each.measured] == [300, 180]
    assert [len(each.standings) for each in cut.values()] == [1, 1]


def test_the_record_joins_days_and_what_is_in_memory() -> None:
    before = Day(measured=(Span(NOON - timedelta(days=1), MIDNIGHT),), attempts=(ended("u-0", at=MIDNIGHT - MINUTE),))
    known = WorkMemory(
        at=NOON + 2 * MINUTE,
        unwritten=Day(measured=(Span(NOON + MINUTE, NOON + 2 * MINUTE),), attempts=(ended("u-3"),)),
        tracked={
            "u-4": Tracked("hyperpod-ns-team-a", "job-4", an_attempt("u-4"), 7, {"Preempted": 1}, 90),
            "u-3": Tracked("hyperpod-ns-team-a", "job-3", ended("u-3")),
        },
    )
    documents = InMemoryDocuments(
        {
            days.KEY.format("ml-cluster", "2026-11-19"): to_bytes(before, date(2026, 11, 19)),
            days.KEY.format("ml-cluster", "2026-11-20"): to_bytes(A_DAY, NOON.date()),
            memory.KEY.format("ml-cluster"): known.to_bytes(),
        }
    )
    record: WorkRecord = RecordedWork(documents)
    done = record.between("ml-cluster", MIDNIGHT - timedelta(hours=1), NOON + timedelta(hours=3))
    assert [one.uid for one in done.ended] == ["u-0", "u-1", "u-2", "u-3"]
    assert [one.uid for one in done.still] == ["u-4"]
    assert done.measured == (Span(MIDNIGHT - timedelta(hours=1), MIDNIGHT), Span(NOON, NOON + 2 * MINUTE))
    assert done.looked_at == NOON + 2 * MINUTE


def test_a_cluster_without_a_record_has_an_empty_one() -> None:
    assert RecordedWork(InMemoryDocuments()).between("ml-cluster", MIDNIGHT, NOON) == WorkDone(MIDNIGHT, NOON)


def test_what_stood_before_the_first_moment_holds_from_it_on() -> None:
    documents = InMemoryDocuments({days.KEY.format("ml-cluster", "2026-11-20"): to_bytes(A_DAY, NOON.date())})
    done = RecordedWork(documents).between("ml-cluster", NOON + MINUTE / 2, NOON + 2 * MINUTE)
    first, second = done.standings
    assert (first.at, first.whole, first.lines) == (NOON + MINUTE / 2, True, A_DAY.standings[0].lines)
    assert second == A_DAY.standings[1]


@pytest.mark.parametrize("damage", [b"no gzip", gzip.compress(b"{}", mtime=0), WorkMemory().to_bytes()[:-3]], ids=len)
def test_a_damaged_memory_is_refused(damage: bytes) -> None:
    with pytest.raises(ValueError, match="memory of work"):
        WorkMemory.from_bytes(damage)


AMOUNTS = st.integers(0, 3)
LINES = st.dictionaries(
    st.tuples(st.sampled_from(["a", "b"]), st.just(G5), st.just(GPU)), st.builds(Line, AMOUNTS, AMOUNTS), max_size=2
)


@given(st.lists(st.tuples(LINES, st.dictionaries(st.just((G5, GPU)), AMOUNTS)), min_size=1, max_size=6))
def test_changes_play_back_to_what_stood(given_standings: list[tuple[dict, dict]]) -> None:  # type: ignore[type-arg]
    whole = [
        Standing(
            NOON + n * MINUTE,
            {place: line for place, line in lines.items() if line != Line()},
            {kind: amount for kind, amount in capacity.items() if amount},
        )
        for n, (lines, capacity) in enumerate(given_standings)
    ]
    changes = [whole[0], *(after.since(before) for before, after in pairwise(whole))]
    played = {one.at: one for one in whole_ones(change for change in changes if change)}
    for standing in whole:
        at = max(moment for moment in played if moment <= standing.at)
        assert (played[at].lines, played[at].capacity) == (standing.lines, standing.capacity)


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)), max_size=8))
def test_spans_together_cover_each_minute_that_one_covers_once(given_spans: list[tuple[int, int]]) -> None:
    joined = union(Span(NOON + a * MINUTE, NOON + (a + n) * MINUTE) for a, n in given_spans)
    covered = {minute for a, n in given_spans for minute in range(a, a + n)}
    assert sum(span.seconds for span in joined) == 60 * len(covered)
    assert all(before.end < after.start for before, after in pairwise(joined))
