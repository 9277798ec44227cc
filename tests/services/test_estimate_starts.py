"""Estimates of one cluster: kept once for all looks, settled by the record of work, never sharp by a bad history."""

from __future__ import annotations

import gzip
import random
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import create_autospec

import pytest

from taskgov.contracts.steps import EstimateStartsRequest, EstimateStartsResult
from taskgov.errors import UpstreamError
from taskgov.estimates import drawing
from taskgov.estimates.kept import ALL_TEAMS, KEY, NONE_FOR_ANYBODY, TEAM_KEY, KeptEstimates
from taskgov.estimates.scenes import CHECKS_LEFT_OUT
from taskgov.quantities import GPU
from taskgov.services.estimate_starts import SECONDS, EstimateStarts
from taskgov.services.read_queue import ReadQueue
from taskgov.services.work_record import RecordedWork
from taskgov.snapshot.unreadable import UnreadableObject
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.day import KEY as DAY_KEY
from taskgov.work.day import Day, to_bytes
from taskgov.work.measured import Span
from tests.support.lab import G5, Lab
from tests.support.memory import CLUSTER_ARN, NOON, InMemoryDocuments, RecordingFailures

if TYPE_CHECKING:
    from datetime import datetime

    from taskgov.ports import StoredVersion
    from taskgov.snapshot.model import ClusterFacts, KubernetesObject, Snapshot

HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
ML = "ml-cluster"


def attempt(
    uid: str, admitted: datetime | None, ended: datetime | None, end: End = End.FINISHED, **fields: Any
) -> Attempt:
    usual: dict[str, Any] = {
        "uid": uid,
        "number": 1,
        "team": "team-a",
        "owner": None,
        "stem": "train",
        "kind": "PyTorchJob",
        "priority_class": None,
        "priority": 0,
        "held": (Held(G5, GPU, 4),),
        "max_seconds": None,
        "created": admitted or NOON,
        "queued": admitted or NOON,
        "admitted": admitted,
        "ended": ended,
        "end": end,
    }
    return Attempt(**usual | fields)


def past(count: int = 60, last: datetime = NOON) -> list[Attempt]:
    """Return jobs that ran for two to four hours each, one every six hours up to a moment."""
    chance = random.Random(1)  # noqa: S311 -- the same each time, no secret
    starts = [last - timedelta(hours=6 * n + 5) for n in range(count)]
    return [attempt(f"past-{n}", at, at + chance.uniform(2, 4) * HOUR) for n, at in enumerate(starts)]


@dataclass
class Looked:
    """A cluster whose starts are estimated, and its bucket."""

    documents: InMemoryDocuments = field(default_factory=InMemoryDocuments)
    failures: RecordingFailures = field(default_factory=RecordingFailures)
    snapshot: Snapshot = field(default_factory=lambda: queue().snapshot())
    processor: float = 0.0
    """What the processor's clock adds each time it is read."""
    used: float = 0.0
    error: Exception | None = None
    unknown: Exception | None = None

    def read(self, _facts: ClusterFacts) -> Snapshot:
        if self.error is not None:
            raise self.error
        return self.snapshot

    def describe(self, _cluster: str) -> ClusterFacts:
        if self.unknown is not None:
            raise self.unknown
        return self.snapshot.cluster

    def clock(self) -> float:
        self.used += self.processor
        return self.used

    def record(self, attempts: list[Attempt], last: datetime = NOON, days: int = 30) -> Looked:
        for day, part in Day(tuple(attempts), (Span(last - timedelta(days=days), last),)).by_day().items():
            self.documents.put(DAY_KEY.format(ML, day.isoformat()), to_bytes(part, day), "application/gzip")
        return self

    def look(self, after: timedelta = timedelta(), documents: Any = None) -> EstimateStartsResult:
        self.snapshot = replace(self.snapshot, taken_at=self.snapshot.taken_at + after)
        bucket: Any = documents or self.documents
        reader = create_autospec(ReadQueue, instance=True, side_effect=self.read)
        reader.describe.side_effect = self.describe
        use = EstimateStarts(reader, bucket, RecordedWork(bucket), self.failures, self.clock, keep_days=180)
        return use(EstimateStartsRequest(cluster_arn=CLUSTER_ARN))

    @property
    def kept(self) -> KeptEstimates:
        return KeptEstimates.from_bytes(self.documents.stored[KEY.format(ML)])


def queue(*more: str) -> Lab:
    lab = Lab().team("team-a", 2, borrow=200).team("team-b", 4).machines(6)
    lab.submit("team-b", "b-own", pods=2).submit("team-a", "a-own", pods=4)
    for name in more or ("waits",):
        lab.submit("team-a", name, pods=2)
    return lab


@pytest.fixture
def looked() -> Looked:
    return Looked().record(past())


def test_who_waits_is_estimated_and_it_is_kept(looked: Looked) -> None:
    assert looked.look() == EstimateStartsResult(waiting=1, estimated=1, futures=100)
    (waiting,) = looked.kept.waiting
    assert (waiting.uid, waiting.team, waiting.made, waiting.calibrated) == ("uid-waits", "team-a", NOON, False)
    # What runs began an hour ago and takes two to four hours in all.
    assert waiting.early is not None
    assert waiting.half is not None
    assert waiting.nine is not None
    assert 0.3 * 3600 < waiting.half < 3 * 3600
    assert waiting.early <= waiting.half <= waiting.nine
    assert {before.uid for before in waiting.after} == {"uid-a-own", "uid-b-own"}
    assert sum(before.futures for before in waiting.after) == 100
    (outcome,) = looked.kept.outcomes
    assert (outcome.uid, outcome.made, outcome.raw, outcome.is_open) == (
        "uid-waits",
        int(NOON.timestamp()),
        (waiting.half, waiting.nine),
        True,
    )
    assert looked.failures.reported == []


def test_a_look_that_comes_twice_and_a_restart_change_nothing(looked: Looked) -> None:
    looked.look()
    before = dict(looked.documents.stored)
    assert looked.look() == EstimateStartsResult()
    assert looked.documents.stored == before


def test_while_the_queue_is_the_same_futures_are_played_once_an_hour(looked: Looked) -> None:
    played = [looked.look(5 * MINUTE).futures for _ in range(14)]
    assert played == [100] + [0] * 11 + [100, 0]
    assert len(looked.kept.outcomes) == 2  # at submission, and after an hour


def test_another_queue_is_estimated_at_once(looked: Looked) -> None:
    looked.look()
    looked.snapshot = replace(queue("waits", "second").snapshot(), taken_at=NOON)
    looked.look(5 * MINUTE)
    assert {waiting.uid for waiting in looked.kept.waiting} == {"uid-waits", "uid-second"}
    assert len(looked.kept.outcomes) == 2  # of the first job none again: its first is not an hour old


def test_a_start_settles_its_estimate_by_the_record_of_work(looked: Looked) -> None:
    looked.look()
    start = NOON + HOUR
    looked.snapshot = Lab().team("team-a", 2, borrow=200).team("team-b", 4).machines(6).snapshot()
    looked.record([*past(), attempt("uid-waits", start, start + HOUR)], NOON + 3 * HOUR)
    looked.look(3 * HOUR)
    (outcome,) = looked.kept.outcomes
    assert (outcome.start, outcome.cancelled) == (int(start.timestamp()), False)
    score = looked.kept.scores["team-a"]
    assert score.number == 1
    assert looked.kept.scores[ALL_TEAMS] == score
    assert score.half == (start - NOON <= timedelta(seconds=outcome.given.half))


def test_a_job_that_went_without_starting_counts_for_nothing(looked: Looked) -> None:
    looked.look()
    looked.snapshot = Lab().team("team-a", 2, borrow=200).team("team-b", 4).machines(6).snapshot()
    looked.record([*past(), attempt("uid-waits", None, NOON + 30 * MINUTE, End.GONE)], NOON + HOUR)
    looked.look(HOUR)
    (outcome,) = looked.kept.outcomes
    assert outcome.cancelled
    assert looked.kept.scores == {}


def test_an_end_before_the_estimate_says_nothing_of_this_wait(looked: Looked) -> None:
    looked.look()
    looked.snapshot = Lab().team("team-a", 2, borrow=200).team("team-b", 4).machines(6).snapshot()
    evicted = attempt("uid-waits", NOON - 2 * HOUR, NOON - HOUR, End.EVICTED)
    looked.record([*past(), evicted], NOON + HOUR)
    looked.look(HOUR)
    assert looked.kept.outcomes[0].is_open


def test_a_job_that_waits_longer_than_was_said_is_a_miss_before_it_starts(looked: Looked) -> None:
    looked.look()
    looked.record(past(), NOON + 20 * HOUR)
    looked.look(20 * HOUR)
    assert looked.kept.scores["team-a"] == (1, 0.0, 0.0)


def test_with_enough_outcomes_estimates_are_calibrated(looked: Looked) -> None:
    looked.look()
    raw = looked.kept.outcomes[0].raw
    made = int((NOON - 10 * HOUR).timestamp())
    moments = sorted(made + n - (n % 12) * 86400 for n in range(48))
    late = [
        replace(looked.kept.outcomes[0], uid=f"u{n}", made=moment, start=moment + 4 * round(raw.half))
        for n, moment in enumerate(moments)
    ]
    stored = replace(looked.kept, outcomes=tuple(late), at=NOON - HOUR, estimated_at=None)
    looked.documents.stored[KEY.format(ML)] = stored.to_bytes()
    looked.look()
    (waiting,) = looked.kept.waiting
    assert waiting.calibrated
    assert waiting.half is not None
    assert waiting.half > 1.3 * raw.half  # twelve days that agree move it by a part of their error
    assert looked.kept.outcomes[-1].raw == raw


class Racing(InMemoryDocuments):
    """A bucket in which another run writes first, so many times."""

    races = 0

    def put_version(self, key: str, body: bytes, content_type: str, instead_of: StoredVersion | None) -> StoredVersion:
        if self.races and key == KEY.format(ML):
            self.races -= 1
            other = KeptEstimates(NOON - timedelta(seconds=self.races + 1), digest=f"other {self.races}")
            self.put(key, other.to_bytes(), content_type)
        return super().put_version(key, body, content_type, instead_of)


@pytest.mark.parametrize("races", [1, 2])
def test_of_two_looks_at_once_nothing_is_lost(looked: Looked, races: int) -> None:
    bucket = Racing(looked.documents.stored)
    bucket.races = races
    assert looked.look(documents=bucket).estimated == 1
    assert [waiting.uid for waiting in looked.kept.waiting] == ["uid-waits"]


def test_who_is_overtaken_again_and_again_leaves_it_to_the_others(looked: Looked) -> None:
    bucket = Racing(looked.documents.stored)
    bucket.races = 9
    assert looked.look(documents=bucket) == EstimateStartsResult()
    assert looked.failures.reported == []


@pytest.mark.parametrize(
    ("attempts", "last", "said"),
    [
        (past(3), NOON, "no estimates: 3 runs are recorded, and it takes 20"),
        (past(60, NOON - timedelta(days=9)), NOON - timedelta(days=9), "no estimates: the history ends 9.0 days"),
        ([], NOON, "no estimates: 0 runs are recorded"),
    ],
    ids=["records are deleted", "a gap up to now", "a new cluster"],
)
def test_a_bad_history_gives_no_estimate(attempts: list[Attempt], last: datetime, said: str) -> None:
    looked = Looked().record(attempts, last)
    result = looked.look()
    assert (result.waiting, result.estimated) == (1, 0)
    assert result.notes[0].startswith(said)
    assert (looked.kept.waiting, looked.kept.outcomes, looked.kept.waits) == ((), (), 1)


def test_a_damaged_day_of_the_record_gives_no_estimate(looked: Looked) -> None:
    looked.documents.stored[DAY_KEY.format(ML, "2026-11-19")] = b"no gzip"
    assert "work/ml-cluster/2026-11-19.jsonl.gz cannot be read" in looked.look().notes[0]
    assert looked.kept.waiting == ()


def test_objects_that_cannot_be_read_give_no_estimate(looked: Looked) -> None:
    odd = UnreadableObject("ClusterQueue", "", "hyperpod-ns-team-b-clusterqueue", "no spec")
    looked.snapshot = replace(looked.snapshot, unreadable_objects=(odd,))
    assert looked.look().notes == ("no estimates: 1 objects of Kueue cannot be read",)


@pytest.mark.parametrize("is_finished", [True, False])
def test_a_workload_that_cannot_be_read_stops_estimates_unless_it_is_finished(
    looked: Looked, is_finished: bool
) -> None:
    odd = UnreadableObject("Workload", "job", "no spec", "hyperpod-ns-team-a", is_finished)
    looked.snapshot = replace(looked.snapshot, unreadable_objects=(odd,))
    assert looked.look().estimated == is_finished


def test_without_time_there_are_no_estimates(looked: Looked) -> None:
    looked.processor = SECONDS / 100  # it is read several times in each future
    result = looked.look()
    assert 0 < result.futures < 20
    assert result.estimated == 0
    played = f"{result.futures} futures were played"
    assert result.notes == (f"no estimates: {played} in the time there is, and it takes 20",)


def test_futures_that_were_left_out_do_not_count(looked: Looked, monkeypatch: pytest.MonkeyPatch) -> None:
    def left_out(_scene: Any, watched: Any, *_: Any) -> drawing.Together:
        return drawing.Together(dict.fromkeys(watched, [60.0] * 19), {}, 24)

    monkeypatch.setattr(drawing, "waits_together", left_out)
    assert looked.look().notes == ("no estimates: 19 futures were played in the time there is, and it takes 20",)


def test_a_job_that_waits_for_a_day_needs_fewer_futures_and_no_more_time() -> None:
    weeks = [
        attempt(f"past-{n}", at := NOON - timedelta(hours=6 * n, days=8), at + timedelta(days=4 + n % 4))
        for n in range(60)
    ]
    looked = Looked().record(weeks, days=60)
    assert looked.look() == EstimateStartsResult(waiting=1, estimated=1, futures=25)
    (waiting,) = looked.kept.waiting
    assert (waiting.half or 0) > DAY.total_seconds()
    assert waiting.futures == sum(before.futures for before in waiting.after) == 25


def test_estimates_that_cannot_be_read_are_reported_and_begun_anew(looked: Looked) -> None:
    looked.documents.stored[KEY.format(ML)] = b"damaged"
    assert looked.look().estimated == 1
    assert looked.failures.reported == [(ML, "read the kept estimates", "ValueError")]


def test_a_cluster_that_cannot_be_read_is_reported_and_no_failure_of_the_function(looked: Looked) -> None:
    looked.error = UpstreamError("the API is down")
    assert looked.look() == EstimateStartsResult(unreadable=1)
    assert looked.failures.reported == [(ML, "estimate when jobs start", "UpstreamError")]


def test_a_cluster_that_cannot_be_described_is_reported_by_its_id(looked: Looked) -> None:
    looked.unknown = UpstreamError("describe cluster: 500")
    assert looked.look() == EstimateStartsResult(unreadable=1)
    assert looked.failures.reported == [("abcdefghijkl", "estimate when jobs start", "UpstreamError")]


def test_a_clock_that_was_ahead_spoils_nothing_that_is_kept(looked: Looked) -> None:
    looked.look()
    looked.look(timedelta(days=400))  # somebody set the clock a year ahead, and back
    looked.snapshot = replace(looked.snapshot, taken_at=NOON + 5 * MINUTE)
    assert looked.look().estimated == 1
    assert all(kept.made <= (NOON + 5 * MINUTE).timestamp() for kept in looked.kept.outcomes)


def test_a_member_reads_the_own_team_alone(looked: Looked) -> None:
    lab = queue("waits")
    lab.submit("team-b", "b-waits", pods=4)
    looked.snapshot = lab.snapshot()
    looked.look()
    part = KeptEstimates.from_bytes(looked.documents.stored[TEAM_KEY.format(ML, "team-a")])
    assert {waiting.team for waiting in part.waiting} == {"team-a"}
    assert {kept.team for kept in part.outcomes} == {"team-a"}
    assert set(part.scores) <= {"team-a"}
    assert all(before.uid == "" or before.team == "team-a" for waiting in part.waiting for before in waiting.after)


def test_a_team_that_waits_no_longer_has_no_estimates_left(looked: Looked) -> None:
    looked.look()
    looked.snapshot = Lab().team("team-a", 2, borrow=200).team("team-b", 4).machines(6).snapshot()
    looked.record([*past(), attempt("uid-waits", NOON + HOUR, NOON + 2 * HOUR)], NOON + 3 * HOUR)
    looked.look(3 * HOUR)
    assert KeptEstimates.from_bytes(looked.documents.stored[TEAM_KEY.format(ML, "team-a")]).waiting == ()


def test_nothing_of_a_job_is_kept(looked: Looked) -> None:
    looked.look()
    text = gzip.decompress(looked.documents.stored[KEY.format(ML)]).decode()
    assert "uid-waits" in text
    assert "pytorchjob" not in text
    assert '"a-own"' not in text


def changed(snapshot: Snapshot, uid: str, **parts: Any) -> Snapshot:
    """Return a snapshot in which a workload has other parts."""
    items = tuple({**item, **parts} if item["metadata"]["uid"] == uid else item for item in snapshot.kueue.workloads)
    return replace(snapshot, kueue=replace(snapshot.kueue, workloads=items))


def out_of_the_queue(until: str) -> dict[str, Any]:
    """Return the status of a workload whose pods were not ready in time."""
    conditions = [
        {"type": kind, "status": status, "reason": "PodsReadyTimeout", "message": "", "lastTransitionTime": at}
        for kind, status, at in (
            ("QuotaReserved", "False", "2026-11-20T11:50:00Z"),
            ("Evicted", "True", "2026-11-20T11:50:00Z"),
            ("Requeued", "False", "2026-11-20T11:50:00Z"),
        )
    ]
    return {"requeueState": {"count": 3, "requeueAt": until}, "conditions": conditions}


def test_a_job_that_no_free_quota_starts_has_no_estimate(looked: Looked) -> None:
    lab = queue("waits")
    lab.submit("team-a", "huge", pods=20)
    looked.snapshot = changed(
        lab.submit("team-a", "later", pods=2).snapshot(), "uid-later", status=out_of_the_queue("2026-11-20T20:00:00Z")
    )
    result = looked.look()
    assert (result.waiting, result.estimated) == (3, 1)
    assert [waiting.uid for waiting in looked.kept.waiting] == ["uid-waits"]
    assert result.notes == ("2 of 3 waiting have no estimate: no free quota starts them",)


def test_a_job_that_comes_back_to_the_queue_is_estimated_at_once(looked: Looked) -> None:
    looked.snapshot = changed(looked.snapshot, "uid-waits", status=out_of_the_queue("2026-11-20T12:04:00Z"))
    assert looked.look() == EstimateStartsResult(
        waiting=1, notes=("1 of 1 waiting have no estimate: no free quota starts them",)
    )
    assert looked.look(5 * MINUTE).estimated == 1


def test_another_request_is_another_queue(looked: Looked) -> None:
    looked.look()
    item = next(item for item in looked.snapshot.kueue.workloads if item["metadata"]["uid"] == "uid-waits")
    pods = [{**pods, "count": 1} for pods in item["spec"]["podSets"]]
    looked.snapshot = changed(looked.snapshot, "uid-waits", spec={**item["spec"], "podSets": pods})
    assert looked.look(5 * MINUTE).futures == 100


def test_where_few_hours_were_measured_starts_are_only_bounded_from_below(looked: Looked) -> None:
    looked.look()
    sharp = replace(looked.kept.outcomes[0], start=int((NOON + HOUR).timestamp()))
    made = int((NOON - 20 * DAY).timestamp())
    outcomes = tuple(replace(sharp, uid=f"u{n}", made=made + n, start=made + n + 3600) for n in range(30))
    for hours, is_sharp in ((23, False), (25, True)):
        span = Span(NOON - timedelta(hours=hours), NOON)
        short = [
            attempt(f"short-{n}", at := NOON - timedelta(minutes=20 * n + 30), at + 20 * MINUTE) for n in range(60)
        ]
        recent = Looked(snapshot=queue().snapshot())
        for day, part in Day(tuple(short), (Span(NOON - 30 * DAY, NOON - 16 * DAY), span)).by_day().items():
            recent.documents.put(DAY_KEY.format(ML, day.isoformat()), to_bytes(part, day), "application/gzip")
        stored = replace(looked.kept, outcomes=outcomes, at=NOON - HOUR, estimated_at=None)
        recent.documents.stored[KEY.format(ML)] = stored.to_bytes()
        result = recent.look()
        assert [waiting.calibrated for waiting in recent.kept.waiting] == [is_sharp]
        assert any("less than a day of the last 14 was measured" in note for note in result.notes) != is_sharp


def test_an_estimate_stays_open_while_the_queue_is_on_hold(looked: Looked) -> None:
    looked.look()
    doors = tuple(
        {**door, "spec": {**door["spec"], "stopPolicy": "Hold"}} for door in looked.snapshot.kueue.local_queues
    )
    looked.snapshot = replace(looked.snapshot, kueue=replace(looked.snapshot.kueue, local_queues=doors))
    assert looked.look(2 * DAY).waiting == 0
    assert looked.kept.outcomes[0].is_open


def test_members_read_that_their_cluster_has_no_estimates_but_not_why(looked: Looked) -> None:
    queues = tuple(
        {**item, "spec": {**item["spec"], "queueingStrategy": "StrictFIFO"}}
        for item in looked.snapshot.kueue.cluster_queues
    )
    looked.snapshot = replace(looked.snapshot, kueue=replace(looked.snapshot.kueue, cluster_queues=queues))
    assert "StrictFIFO" in looked.look().notes[0]
    part = KeptEstimates.from_bytes(looked.documents.stored[TEAM_KEY.format(ML, "team-a")])
    assert part.notes == (NONE_FOR_ANYBODY,)


def test_admission_checks_are_left_out_of_futures(looked: Looked) -> None:
    looked.look()
    without = looked.kept.waiting
    queues = tuple(
        {**item, "spec": {**item["spec"], "admissionChecks": ["capacity"]}}
        for item in looked.snapshot.kueue.cluster_queues
    )
    checked = Looked(snapshot=replace(looked.snapshot, kueue=replace(looked.snapshot.kueue, cluster_queues=queues)))
    checked.record(past())
    assert checked.look().notes == (CHECKS_LEFT_OUT,)
    assert checked.kept.waiting == without


def test_the_time_until_a_check_answered_is_no_run_time() -> None:
    waited = queue().snapshot()
    for uid in ("uid-a-own", "uid-b-own"):
        item = next(item for item in waited.kueue.workloads if item["metadata"]["uid"] == uid)
        conditions = [
            {**condition, "lastTransitionTime": "2026-11-19T16:00:00Z"}
            if condition["type"] == "QuotaReserved"
            else condition
            for condition in item["status"]["conditions"]
        ]
        waited = changed(waited, uid, status={**item["status"], "conditions": conditions})
    at_once, after_a_check = Looked().record(past()), Looked(snapshot=waited).record(past())
    at_once.look()
    after_a_check.look()
    assert after_a_check.kept.waiting == at_once.kept.waiting


def test_a_job_whose_check_is_pending_has_not_run_and_does_not_change_the_queue(looked: Looked) -> None:
    for uid in ("uid-a-own", "uid-b-own"):
        item = next(item for item in looked.snapshot.kueue.workloads if item["metadata"]["uid"] == uid)
        reserved = [condition for condition in item["status"]["conditions"] if condition["type"] == "QuotaReserved"]
        looked.snapshot = changed(looked.snapshot, uid, status={**item["status"], "conditions": reserved})
    looked.look()
    (waiting,) = looked.kept.waiting
    assert waiting.early is not None
    assert waiting.early > 1.9 * 3600  # both take two to four hours from now
    assert looked.look(5 * MINUTE).futures == 0


def test_a_document_of_a_team_that_only_reads_that_there_is_nothing_is_written_once(looked: Looked) -> None:
    looked.documents.stored = {}
    looked.look()
    first = looked.documents.stored[TEAM_KEY.format(ML, "team-a")]
    looked.look(5 * MINUTE)
    assert looked.documents.stored[TEAM_KEY.format(ML, "team-a")] == first
    assert KeptEstimates.from_bytes(first).notes == (NONE_FOR_ANYBODY,)


@pytest.mark.parametrize("types", [(G5, "ml.p5.48xlarge"), ("ml.p5.48xlarge", G5)], ids=" then ".join)
def test_a_job_that_is_too_large_for_each_of_several_flavors_has_no_estimate(
    looked: Looked, types: tuple[str, str]
) -> None:
    def of_both(item: KubernetesObject) -> dict[str, Any]:
        (group,) = item["spec"]["resourceGroups"]
        (flavor,) = group["flavors"]
        flavors = [{**flavor, "name": name} for name in types]
        return {**item, "spec": {**item["spec"], "resourceGroups": [{**group, "flavors": flavors}]}}

    lab = queue("waits")
    snapshot = lab.submit("team-a", "huge", pods=20).snapshot()
    other = {**snapshot.kueue.resource_flavors[0]}
    other["metadata"] = {**other["metadata"], "name": "ml.p5.48xlarge"}
    queues = tuple(map(of_both, snapshot.kueue.cluster_queues))
    flavors = (*snapshot.kueue.resource_flavors, other)
    looked.snapshot = replace(snapshot, kueue=replace(snapshot.kueue, cluster_queues=queues, resource_flavors=flavors))
    looked.look()
    assert "uid-huge" not in {waiting.uid for waiting in looked.kept.waiting}
