"""What is kept of estimates: read as it was written, settled by what is known, bounded, and shown while it holds."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from math import inf, isnan, nan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.given import OLD, by_task, clock_time, given_start, given_starts
from taskgov.estimates.kept import ALL_TEAMS, Before, Kept, KeptEstimates, TeamScore, Waiting
from taskgov.estimates.looks import MOST_OUTCOMES, Drawing, Drawn, Seen, advance, is_due, is_later
from taskgov.estimates.quantiles import Estimate
from taskgov.estimates.recalibration import LAST
from taskgov.kueue.named import named
from tests.support.lab import Lab
from tests.support.memory import NOON

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
NOW = int(NOON.timestamp())
RAW = Estimate(600.0, 1200.0)
WAITS = Waiting("u1", "team-a", NOON, 300.0, 600.0, 1200.0, calibrated=True)


def seen(at: datetime = NOON, digest: str = "d", waiting: tuple[str, ...] = ("u1",), **more: Any) -> Seen:
    usual: dict[str, Any] = {"held": {}, "admitted": {}, "ended": {}}
    usual["present"] = frozenset([*waiting, *more.get("held", {})])
    return Seen(at, digest, frozenset(waiting), **(usual | more))


def drawing(*uids: str) -> Drawing:
    return Drawing(tuple(Drawn(uid, "team-a", 300.0, RAW) for uid in uids), 100, len(uids))


def kept_of(*outcomes: Kept, at: datetime = NOON, digest: str = "d") -> KeptEstimates:
    return KeptEstimates(at, at, digest, 100, (WAITS,), 1, outcomes=outcomes)


OPEN = Kept("u1", "team-a", NOW, RAW, RAW)


times = st.integers(0, 2**32)
lengths = st.one_of(st.just(inf), st.integers(0, 10**6).map(float))
names = st.text("abc-", min_size=1, max_size=4)
estimates = st.builds(Estimate, lengths, lengths)
waitings = st.builds(
    Waiting,
    names,
    names,
    times.map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
    *[st.one_of(st.none(), st.integers(0, 10**6).map(float))] * 3,
    st.booleans(),
    st.lists(st.builds(Before, names, names, st.integers(1, 100)), max_size=2).map(tuple),
    st.integers(0, 100),
)
outcomes = st.builds(Kept, names, names, times, estimates, estimates, st.one_of(st.none(), times), st.booleans())


@given(st.lists(waitings, max_size=3), st.lists(outcomes, max_size=3), st.text(max_size=5))
def test_what_is_kept_is_read_as_it_was_written(waiting: list[Waiting], some: list[Kept], note: str) -> None:
    kept = KeptEstimates(
        NOON, None, "d", 7, tuple(waiting), 3, (note,), {"team-a": TeamScore(3, 0.5, 0.75)}, tuple(some)
    )
    assert KeptEstimates.from_bytes(kept.to_bytes()) == kept
    assert kept.to_bytes() == kept.to_bytes()


def test_a_document_without_numbers_of_futures_is_read() -> None:
    document = json.loads(gzip.decompress(kept_of(OPEN).to_bytes()))
    document["waiting"] = [row[:-1] for row in document["waiting"]]
    found = KeptEstimates.from_bytes(gzip.compress(json.dumps(document).encode()))
    assert found == kept_of(OPEN)
    assert [waiting.futures for waiting in found.waiting] == [0]


def test_a_part_that_is_not_known_is_no_number() -> None:
    stored = replace(kept_of(), scores={"team-a": TeamScore(20, 0.5, nan)}).to_bytes()
    assert isnan(KeptEstimates.from_bytes(stored).scores["team-a"].nine)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"text",
        gzip.compress(b"[]", mtime=0),
        gzip.compress(b'{"form": 9}', mtime=0),
        gzip.compress(b'{"form": 1}', mtime=0),
        gzip.compress(b"{", mtime=0),
    ],
    ids=["nothing", "no gzip", "a list", "a later form", "no members", "no JSON"],
)
def test_anything_else_is_no_document_of_estimates(body: bytes) -> None:
    with pytest.raises(ValueError, match=r"it holds|it is of|Expecting"):
        KeptEstimates.from_bytes(body)


def test_a_moment_that_no_clock_shows_is_refused() -> None:
    document = json.loads(gzip.decompress(kept_of().to_bytes())) | {"at": 10**18}
    with pytest.raises(ValueError, match=r"no clock|holds no|year"):
        KeptEstimates.from_bytes(gzip.compress(json.dumps(document).encode()))


def test_a_document_of_a_busy_cluster_is_small() -> None:
    many = tuple(
        Kept(f"7d3c1a52-0b6e-4c8e-9a3a-{n:012}", f"team-{n % 20}", NOW + 37 * n, RAW, RAW, NOW + 37 * n + 777)
        for n in range(MOST_OUTCOMES)
    )
    assert len(kept_of(*many).to_bytes()) < 120_000


def test_futures_are_due_where_the_queue_is_another_one_or_an_hour_is_over() -> None:
    before = kept_of()
    assert is_due(None, seen())
    assert not is_due(before, seen(NOON + 20 * MINUTE))
    assert is_due(before, seen(NOON + 60 * MINUTE))
    assert is_due(before, seen(NOON + MINUTE, "other"))
    assert not is_due(before, seen(NOON + 60 * MINUTE, waiting=()))
    assert is_due(before, seen(NOON - 2 * HOUR))


def test_futures_are_due_once_the_time_of_nine_of_ten_has_passed_but_at_most_each_quarter_of_an_hour() -> None:
    before = kept_of()  # nine of ten is 20 minutes
    assert is_due(before, seen(NOON + 21 * MINUTE))
    assert not is_due(before, seen(NOON + 21 * MINUTE, waiting=()))
    assert not is_due(before, seen(NOON + 21 * MINUTE, waiting=("another",)))
    soon = replace(before, waiting=(replace(WAITS, nine=60.0),))
    assert not is_due(soon, seen(NOON + 14 * MINUTE))
    assert is_due(soon, seen(NOON + 15 * MINUTE))
    assert not is_due(replace(before, waiting=(replace(WAITS, nine=None),)), seen(NOON + 59 * MINUTE))


def test_without_enough_measured_arrivals_no_estimate_is_calibrated() -> None:
    known = tuple(
        Kept(f"old{n}", "team-a", NOW - 9000 - 60 * n, RAW, RAW, NOW - 9000 - 60 * n + 700) for n in range(30)
    )
    (enough,) = advance(kept_of(*known), seen(NOON + HOUR), drawing("u1"), 180).waiting
    few = drawing("u1")._replace(is_representative=False)
    (unknown,) = advance(kept_of(*known), seen(NOON + HOUR), few, 180).waiting
    assert (enough.calibrated, unknown.calibrated) == (True, False)
    assert (unknown.half, unknown.nine) == RAW
    assert (enough.half, enough.nine) != RAW


def test_a_look_that_is_not_later_adds_nothing_but_after_a_wrong_clock() -> None:
    before = kept_of()
    assert [is_later(before, seen(NOON + step)) for step in (MINUTE, 0 * MINUTE, -MINUTE, -HOUR)] == [
        True,
        False,
        False,
        True,
    ]


@pytest.mark.parametrize(
    ("known", "start", "cancelled"),
    [
        (seen(NOON + HOUR), None, False),
        (seen(NOON + HOUR, waiting=(), held={"u1": NOW + 60}), NOW + 60, False),
        (seen(NOON + HOUR, waiting=(), admitted={"u1": [NOW - 500, NOW + 90, NOW + 700]}), NOW + 90, False),
        (seen(NOON + HOUR, admitted={"u1": [NOW + 90]}), NOW + 90, False),
        (seen(NOON + HOUR, waiting=(), ended={"u1": NOW + 90}), None, True),
        (seen(NOON + HOUR, waiting=(), ended={"u1": NOW - 90}), None, False),
        (seen(NOON + HOUR, waiting=()), None, False),
        (seen(NOON + DAY, waiting=()), None, True),
        (seen(NOON + 2 * DAY, waiting=(), present=frozenset({"u1"})), None, False),
        (seen(NOON + HOUR, waiting=(), held={"u1": NOW - 60}), None, True),
        (seen(NOON + HOUR, admitted={"u1": [NOW + 9000]}), None, False),
    ],
    ids=[
        "it waits",
        "it runs",
        "it ran, by the record, and had run before",
        "it started, was evicted and waits again",
        "it is gone",
        "only an earlier attempt ended",
        "nobody knows yet",
        "nobody knows for a day",
        "its queue is on hold",
        "it runs since before the estimate: a clock was wrong",
        "it started later than now: a clock is wrong",
    ],
)
def test_what_becomes_of_an_estimate(known: Seen, start: int | None, cancelled: bool) -> None:
    (outcome,) = advance(kept_of(OPEN), known, None, 180).outcomes
    assert (outcome.start, outcome.cancelled) == (start, cancelled)


def test_an_estimate_is_kept_again_each_hour_of_the_first_day_and_each_day_after() -> None:
    kept: KeptEstimates | None = None
    for hours in range(24 * 4):
        kept = advance(kept, seen(NOON + hours * HOUR), drawing("u1"), 180)
    assert kept is not None
    ages = [(outcome.made - NOW) // 3600 for outcome in kept.outcomes]
    assert ages == [*range(24), 47, 71, 95]


def test_outcomes_are_bounded_by_team_number_and_age() -> None:
    def settled(team: str, count: int, made: int = NOW) -> list[Kept]:
        return [Kept(f"{team}{n}", team, made + n, RAW, RAW, made + n + 60) for n in range(count)]

    old = settled("team-a", 3, NOW - 181 * 86400)
    before = kept_of(
        *old, *settled("team-a", 300), *settled("team-b", 50), *[replace(OPEN, uid=f"o{n}") for n in range(9)]
    )
    waiting = tuple(f"o{n}" for n in range(9))
    after = advance(before, seen(NOON + HOUR, waiting=waiting), None, 180)
    counts = {
        team: sum(not kept.is_open and kept.team == team for kept in after.outcomes) for team in ("team-a", "team-b")
    }
    assert counts == {"team-a": 2 * LAST, "team-b": 50}
    assert sum(kept.is_open for kept in after.outcomes) == 9
    assert min(kept.made for kept in after.outcomes) >= NOW
    assert [kept.made for kept in after.outcomes] == sorted(kept.made for kept in after.outcomes)
    many = kept_of(*[replace(OPEN, uid=f"o{n}", made=NOW + n) for n in range(MOST_OUTCOMES + 5)])
    crowd = advance(many, seen(NOON + 9 * HOUR, waiting=tuple(f"o{n}" for n in range(MOST_OUTCOMES + 5))), None, 180)
    assert (len(crowd.outcomes), crowd.outcomes[0].made) == (MOST_OUTCOMES, NOW + 5)


def test_scores_count_what_is_over_and_leave_cancelled_jobs_out() -> None:
    hit = [Kept(f"h{n}", "team-a", NOW + n, RAW, RAW, NOW + n + 60) for n in range(3)]
    late = [Kept("l", "team-b", NOW, RAW, RAW, NOW + 900), replace(OPEN, team="team-b")]
    gone = Kept("c", "team-a", NOW, RAW, RAW, cancelled=True)
    after = advance(kept_of(*hit, *late, gone), seen(NOON + 15 * MINUTE), None, 180)
    assert after.scores["team-a"] == (3, 1.0, 1.0)
    assert after.scores["team-b"] == (2, 0.0, 1.0)  # the one that waits is late for the first time only, so far
    assert after.scores[ALL_TEAMS].number == 5


def test_words_for_people() -> None:
    sharp = given_start(WAITS)
    assert sharp.cell(NOON) == "12:10 / 12:20"
    assert sharp.sentence(NOON) == "half of the time by 12:10, nine times of ten by 12:20"
    vague = given_start(replace(WAITS, calibrated=False))
    assert (vague.cell(NOON), vague.sentence(NOON)) == ("after 12:05", "no earlier than 12:05")
    late = given_start(replace(WAITS, nine=None))
    assert late.cell(NOON) == "12:10 / 7 days"
    assert late.sentence(NOON) == "half of the time by 12:10, nine times of ten not within 7 days"
    never = given_start(replace(WAITS, early=None, half=None, nine=None))
    assert never.sentence(NOON) == "no earlier than 2026-11-27 12:00"
    assert clock_time(NOON, NOON + DAY) == "2026-11-20 12:00"


def test_an_estimate_holds_while_its_workload_waits_and_somebody_looks() -> None:
    lab = Lab().team("team-a", 1).machines(1).submit("team-a", "runs").submit("team-a", "waits", ago=30)
    snapshot = lab.snapshot()
    key = "hyperpod-ns-team-a/pytorchjob-waits-a1b2c"
    kept = replace(
        kept_of(at=NOON - MINUTE),
        waiting=tuple(replace(WAITS, uid=f"uid-{job}", made=NOON - MINUTE) for job in ("runs", "waits", "gone")),
    )
    found = given_starts(kept, snapshot)
    assert set(found) == {key}
    assert given_starts(None, snapshot) == given_starts(replace(kept, at=NOON - OLD), snapshot) == {}
    evicted = {"type": "Evicted", "status": "True", "reason": "Preempted", "lastTransitionTime": "2026-11-20T12:00:00Z"}
    items = [
        {**item, "status": {**item.get("status", {}), "conditions": [evicted]}}
        if item["metadata"]["uid"] == "uid-waits"
        else item
        for item in snapshot.kueue.workloads
    ]
    again = replace(snapshot, kueue=replace(snapshot.kueue, workloads=tuple(items)))
    assert given_starts(kept, again) == {}


def test_what_a_member_reads_counts_jobs_of_others_and_names_none() -> None:
    after = (Before("x", "team-b", 50), Before("y", "team-a", 30), Before("z", "team-c", 20))
    kept = replace(
        kept_of(OPEN, replace(OPEN, team="team-b")),
        waiting=(replace(WAITS, after=after), replace(WAITS, team="team-b")),
        scores={"team-a": TeamScore(1, 1, 1), "team-b": TeamScore(1, 0, 0), ALL_TEAMS: TeamScore(2, 0.5, 0.5)},
        notes=("2 of team-b are left out",),
    )
    part = kept.of_team("team-a")
    assert part.waiting[0].after == (Before("y", "team-a", 30), Before("", "", 70))
    assert ({kept.team for kept in part.outcomes}, set(part.scores), part.notes) == ({"team-a"}, {"team-a"}, ())
    assert b"team-b" not in gzip.decompress(part.to_bytes())


def test_an_estimate_does_not_hold_after_its_90th_percentile_or_while_no_quota_starts_the_job() -> None:
    lab = Lab().team("team-a", 2).machines(2)
    snapshot = lab.submit("team-a", "runs", pods=2).submit("team-a", "waits").snapshot()
    key = next(its.key for its in map(named, snapshot.kueue.workloads) if its.job == "waits")
    kept = replace(kept_of(), waiting=(replace(WAITS, uid="uid-waits"),))  # made at noon; 1,200 s
    late = replace(kept, at=NOON + 20 * MINUTE)
    assert set(given_starts(late, replace(snapshot, taken_at=NOON + 20 * MINUTE))) == {key}
    assert given_starts(late, replace(snapshot, taken_at=NOON + 21 * MINUTE)) == {}
    big = lab.submit("team-a", "big", gpus=2).snapshot()
    assert given_starts(replace(kept, waiting=(replace(WAITS, uid="uid-big"),)), big) == {}


def test_a_name_of_two_jobs_has_no_estimate_and_a_finished_job_does_not_matter() -> None:
    lab = Lab().team("team-a", 2).machines(2).submit("team-a", "runs", pods=2).submit("team-a", "waits")
    snapshot = lab.snapshot()
    (key,) = (its.key for its in map(named, snapshot.kueue.workloads) if its.job == "waits")
    start = {key: given_start(WAITS)}
    assert by_task(start, snapshot) == {("team-a", "waits"): start[key]}
    item = next(item for item in snapshot.kueue.workloads if item["metadata"]["uid"] == "uid-waits")
    twin = {**item, "metadata": {**item["metadata"], "name": "job-waits-1", "uid": "uid-twin"}}
    finished = {
        "type": "Finished",
        "status": "True",
        "reason": "Succeeded",
        "lastTransitionTime": "2026-11-20T11:00:00Z",
    }
    for status, left in (({}, {}), ({"conditions": [finished]}, {("team-a", "waits"): start[key]})):
        both = replace(snapshot.kueue, workloads=(*snapshot.kueue.workloads, {**twin, "status": status}))
        assert by_task(start, replace(snapshot, kueue=both)) == left
