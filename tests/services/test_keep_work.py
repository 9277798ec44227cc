"""Keeping the record of work: each measurement adds to it once, with other writers beside it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.contracts.steps import PublishUsageRequest
from taskgov.errors import ConflictError, InvalidRequestError, UpstreamError
from taskgov.services.keep_work import TRIES, KeepWork
from taskgov.services.named_owners import KEY, NamedOwners
from taskgov.services.work_record import RecordedWork
from taskgov.work.attempt import End
from taskgov.work.measured import Span
from taskgov.work.owners import Naming, named
from taskgov.work.standing import Line, whole_ones
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import CLUSTER_ARN, NOON, FixedClock, InMemoryDocuments, RecordingFailures

if TYPE_CHECKING:
    from collections.abc import Callable

MINUTE = timedelta(minutes=1)
MEMORY = "memory/ml-cluster/work.json.gz"
TODAY = "work/ml-cluster/2026-11-20.jsonl.gz"


@dataclass
class Kept:
    """A cluster that is looked at, and its record."""

    cluster: GovernedCluster = field(
        default_factory=lambda: (
            GovernedCluster()
            .with_fair_share()
            .with_nodes(2)
            .with_team("team-a", used={GPU: "6"})
            .with_team("team-b", used={GPU: "1"})
        )
    )
    failures: RecordingFailures = field(default_factory=RecordingFailures)
    period: timedelta = MINUTE

    @property
    def documents(self) -> Any:
        return self.cluster.documents

    def look(self, after: timedelta = MINUTE, keep: KeepWork | None = None) -> None:
        """Look after a time: another process, unless `keep` says which."""
        self.cluster.clock.at += after
        keep = keep or KeepWork(self.documents, self.failures, self.period)
        self.cluster.publish_usage(keep_work=keep)(PublishUsageRequest(cluster_arn=CLUSTER_ARN))

    def record(self) -> Any:
        return RecordedWork(self.documents).between("ml-cluster", NOON - timedelta(days=2), NOON + timedelta(days=9))


def test_a_look_keeps_how_quotas_stand() -> None:
    kept = Kept()
    kept.look()
    (standing,) = kept.record().standings
    assert standing.lines == {
        ("team-a", G5, GPU): Line(guaranteed=4, used=6, borrowed=2),
        ("team-b", G5, GPU): Line(guaranteed=4, used=1, lent=2),
    }
    assert standing.capacity == {(G5, GPU): 8}


def test_time_between_looks_is_measured_and_a_missed_look_is_not() -> None:
    kept = Kept()
    for after in (MINUTE, MINUTE, timedelta(), 3 * MINUTE, MINUTE):
        kept.look(after)
    at = NOON + MINUTE
    assert kept.record().measured == (Span(at, at + 2 * MINUTE), Span(at + 4 * MINUTE, at + 5 * MINUTE))


def test_only_changes_of_quotas_are_kept() -> None:
    kept = Kept()
    for _ in range(3):
        kept.look()
    kept.cluster.used["team-b"] = kept.cluster.used["team-a"]
    kept.look()
    first, second = kept.record().standings
    assert second.at == NOON + 4 * MINUTE
    assert not second.whole
    assert [*whole_ones((first, second))][1].lines["team-b", G5, GPU].used == 6


def test_the_file_of_a_day_is_written_once_an_hour_and_when_a_day_begins() -> None:
    kept = Kept()
    written: list[str] = []
    inner = kept.documents.put_version

    def put(key: str, *rest: Any) -> Any:
        written.append(key)
        return inner(key, *rest)

    kept.documents.put_version = put
    kept.period = timedelta(minutes=20)
    for _ in range(13 * 3):
        kept.look(kept.period)
    days = [key for key in written if key.startswith("work/")]
    assert len(days) == 1 + 12 + 2, "the first look, once an hour, and both days at midnight"
    assert kept.record().measured == (Span(NOON + 20 * MINUTE, NOON + 13 * 60 * MINUTE),)


def test_a_day_begins_with_the_whole_that_stood_at_midnight() -> None:
    kept = Kept()
    kept.cluster.clock.at = NOON + timedelta(hours=11, minutes=58, seconds=30)
    for _ in range(4):
        kept.look()
    midnight = NOON + timedelta(hours=12)
    done = RecordedWork(kept.documents).between("ml-cluster", midnight, midnight + timedelta(days=1))
    assert done.measured == (Span(midnight, midnight + timedelta(minutes=2, seconds=30)),)
    assert [(one.at, one.whole, len(one.lines)) for one in done.standings] == [(midnight, True, 2)]


def test_what_ends_is_in_the_record_and_what_continues_is_there_too() -> None:
    kept = Kept()
    kept.cluster.with_waiting("one", "team-a", gpus=4)
    kept.look()
    assert [(one.stem, one.team, one.accelerators, one.end) for one in kept.record().still] == [
        ("one", "team-a", 4, None)
    ]
    kept.cluster.workloads.clear()
    kept.look()
    done = kept.record()
    assert [(one.end, one.inferred, one.ended) for one in done.ended] == [(End.GONE, ("ended",), NOON + 2 * MINUTE)]
    assert done.still == ()


class Contended(InMemoryDocuments):
    """Somebody else writes just before."""

    others: int = 1

    def put_version(self, key: str, body: bytes, content_type: str, instead_of: Any) -> Any:
        if self.others > 0 and key == MEMORY:
            self.others -= 1
            raise ConflictError(key)
        return super().put_version(key, body, content_type, instead_of)


@pytest.mark.parametrize(("others", "fails"), [(TRIES - 1, False), (TRIES, True)])
def test_a_look_that_others_get_in_the_way_of_reads_again(others: int, fails: bool) -> None:
    kept = Kept()
    kept.cluster.documents = documents = Contended(kept.documents.stored)
    documents.others = others
    kept.look()
    assert kept.failures.reported == ([("ml-cluster", "keep the record of work", "ConflictError")] if fails else [])
    assert (kept.record().looked_at is None) == fails


def test_two_looks_at_once_lose_nothing() -> None:
    """The second one reads again what the first one wrote between its reading and its writing."""
    kept = Kept()
    kept.look()
    inner = kept.documents.put_version
    turns: list[str] = []

    def write(key: str, body: bytes, content_type: str, instead_of: Any) -> Any:
        if key == MEMORY and not turns:
            turns.append(key)
            kept.cluster.with_waiting("two", "team-b", gpus=1)
            kept.look(timedelta(seconds=1))
        return inner(key, body, content_type, instead_of)

    kept.documents.put_version = write
    kept.cluster.with_waiting("one", "team-a", gpus=1)
    kept.look()
    assert turns
    assert {one.stem for one in kept.record().still} == {"one", "two"}
    assert kept.failures.reported == []


def test_a_damaged_memory_is_reported_and_begins_anew() -> None:
    kept = Kept()
    for _ in range(2):
        kept.look()
    kept.documents.stored[MEMORY] = b"damage"
    for _ in range(2):
        kept.look()
    assert kept.failures.reported == [("ml-cluster", "read the memory of work", "ValueError")]
    assert kept.record().measured[-1] == Span(NOON + 3 * MINUTE, NOON + 4 * MINUTE)


@pytest.mark.parametrize(("restores", "days"), [(True, 0), (False, 0), (False, 8)])
def test_a_day_that_cannot_be_read_stays_and_what_belongs_to_it_waits(restores: bool, days: int) -> None:
    kept = Kept()
    kept.look()
    whole = kept.documents.stored[TODAY]
    kept.documents.stored[TODAY] = b"damage"
    kept.look()
    kept.look(timedelta(hours=2))
    assert kept.failures.reported == [("ml-cluster", "read a day of the record of work", "ValueError")]
    assert kept.documents.stored[TODAY] == b"damage"
    with pytest.raises(InvalidRequestError, match=r"work/ml-cluster/2026-11-20\.jsonl\.gz cannot be read .* delete it"):
        kept.record()
    if days:
        kept.look(timedelta(days=days))  # its earlier versions are gone by now
    if restores:
        kept.documents.stored[TODAY] = whole
    else:
        del kept.documents.stored[TODAY]
    kept.look(timedelta(hours=2))
    first = NOON + MINUTE
    missed = (
        Span(first, first + 2 * MINUTE),
        Span(first + MINUTE + timedelta(hours=2), first + timedelta(hours=2, minutes=2)),
    )
    assert all(span not in kept.record().measured for span in missed) == bool(days)
    assert (missed[0] in kept.record().measured) == (not days)


def test_a_process_reads_its_memory_once_and_again_where_somebody_else_wrote_it() -> None:
    kept = Kept()
    keep = KeepWork(kept.documents, kept.failures, MINUTE)
    find, put = kept.documents.find_version, kept.documents.put_version
    calls: list[str] = []

    def counted(what: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def answer(key: str, *rest: Any) -> Any:
            calls.append(f"{what} {key}")
            return call(key, *rest)

        return answer

    kept.documents.find_version, kept.documents.put_version = counted("get", find), counted("put", put)
    kept.look(keep=keep)
    calls.clear()
    for _ in range(3):
        kept.look(keep=keep)
    assert calls == 3 * [f"put {MEMORY}"]
    kept.look()  # another process
    calls.clear()
    kept.look(keep=keep)
    assert calls == [f"put {MEMORY}", f"get {MEMORY}", f"put {MEMORY}"]
    del kept.documents.stored[MEMORY]
    kept.look(keep=keep)
    assert kept.failures.reported == []
    kept.look(keep=keep)
    at = kept.cluster.clock.at
    assert kept.record().measured == (Span(at - MINUTE, at),), "what was in no file yet was not measured"


def test_a_first_look_at_much_that_ended_long_ago_writes_a_file_for_each_of_35_days() -> None:
    """Older ends are left out, however many finished workloads are still there."""
    kept = Kept()
    for number in range(300):
        kept.cluster.with_waiting(f"old-{number}", "team-a", gpus=1)
        ended = f"{NOON - timedelta(hours=6 * number):%Y-%m-%dT%H:%M:%SZ}"
        workload = kept.cluster.workloads[-1]
        workload["metadata"]["creationTimestamp"] = f"{NOON - timedelta(days=90):%Y-%m-%dT%H:%M:%SZ}"
        workload["status"]["conditions"] = [
            {"type": "Finished", "status": "True", "reason": "Succeeded", "lastTransitionTime": ended}
        ]
    kept.look()
    assert len([key for key in kept.documents.stored if key.startswith("work/")]) == 36
    everything = RecordedWork(kept.documents).between("ml-cluster", NOON - timedelta(days=90), NOON + timedelta(days=1))
    assert len(everything.ended) == 35 * 4
    assert kept.failures.reported == []


def test_a_look_of_the_future_does_not_end_the_record() -> None:
    kept = Kept()
    kept.look()
    kept.look(timedelta(days=400))
    kept.cluster.clock.at = NOON + 2 * MINUTE
    for _ in range(3):
        kept.look()
    done = kept.record()
    assert done.looked_at == NOON + 5 * MINUTE
    assert done.measured == (Span(NOON + MINUTE, NOON + 2 * MINUTE), Span(NOON + 3 * MINUTE, NOON + 5 * MINUTE))
    assert all(standing.at <= done.looked_at for standing in done.standings)


def test_a_clock_that_is_a_little_behind_adds_nothing() -> None:
    kept = Kept()
    kept.look()
    kept.look()
    before = kept.documents.stored[MEMORY]
    kept.look(timedelta(seconds=-30))
    assert kept.documents.stored[MEMORY] == before
    assert kept.failures.reported == []


def test_a_record_that_cannot_be_kept_does_not_fail_the_look() -> None:
    kept = Kept()

    def fail(*_: Any) -> Any:
        raise UpstreamError("S3 is down")

    kept.documents.find_version = fail
    kept.look()
    assert kept.failures.reported == [("ml-cluster", "keep the record of work", "UpstreamError")]


def a_workload(**metadata: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"name": "w", **metadata}}


def test_owners_are_kept_as_the_parameter_says() -> None:
    documents = InMemoryDocuments()
    ana = a_workload(annotations={"taskgov/submitted-by": "ana"})

    def kept(naming: Naming, item: dict[str, Any] = ana) -> str | None:
        return NamedOwners(documents, RecordingFailures(), FixedClock(), "taskgov/submitted-by", naming).of(item)

    assert kept(Naming.PLAIN) == "ana"
    assert kept(Naming.PLAIN, a_workload(labels={"taskgov/submitted-by": "eve"})) == "eve"
    assert kept(Naming.NONE) is None
    assert kept(Naming.HASHED, a_workload()) is None
    assert KEY not in documents.stored, "no key is made before somebody is to be hashed"
    hashed = kept(Naming.HASHED)
    assert hashed == kept(Naming.HASHED) != kept(Naming.HASHED, a_workload(labels={"taskgov/submitted-by": "eve"}))
    assert "ana" not in str(hashed)
    assert len(documents.stored[KEY]) == 32
    with pytest.raises(ValueError, match="without a key"):
        named("ana", Naming.HASHED, b"")


def test_while_the_key_cannot_be_read_nobody_is_named_and_each_look_tries_once() -> None:
    documents, failures, clock = InMemoryDocuments({KEY: b""}), RecordingFailures(), FixedClock()
    owners = NamedOwners(documents, failures, clock, "owner", Naming.HASHED)
    ana = a_workload(labels={"owner": "ana"})
    assert [owners.of(ana) for _ in range(3)] == [None, None, None]
    reported = [("all clusters", "read the key of the owners", "UpstreamError")]
    assert failures.reported == reported
    clock.at += MINUTE
    assert owners.of(ana) is None
    assert failures.reported == 2 * reported
    del documents.stored[KEY]
    clock.at += MINUTE
    assert owners.of(ana) == owners.of(ana) is not None
