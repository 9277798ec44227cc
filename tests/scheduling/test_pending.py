"""The order of pending workloads, and moving them by class instead of one by one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.scheduling.objects import PodSet, Workload
from taskgov.scheduling.pending import PendingQueue
from taskgov.scheduling.results import Requeue
from taskgov.scheduling.state import Record

if TYPE_CHECKING:
    from collections.abc import Callable

SHAPES = ((PodSet("main", 1, (("cpu", 1),)),), (PodSet("main", 1, (("cpu", 2),)),), (PodSet("main", 1, (("cpu", 3),)),))


def _record(name: str, *, priority: int = 0, created: int = 0, shape: int = 0, namespace: str = "a") -> Record:
    return Record(Workload(namespace, name, "q", SHAPES[shape], priority=priority, created=created, uid=name))


def _queue(*records: Record, strategy: str = "BestEffortFIFO", hashing: bool = True) -> PendingQueue[Record]:
    queue: PendingQueue[Record] = PendingQueue(strategy, hashing=hashing)
    for record in records:
        queue.push(record)
    return queue


def _keys(records: list[Record]) -> list[str]:
    return [r.workload.name for r in records]


def _drain(queue: PendingQueue[Record]) -> list[str]:
    found = []
    while (record := queue.pop()) is not None:
        found.append(record.workload.name)
    return found


def test_priority_comes_before_age_and_age_before_uid() -> None:
    queue = _queue(
        _record("d", created=5),
        _record("b", created=3),
        _record("c", created=3),
        _record("a", priority=1, created=9, shape=1),
    )
    assert _drain(queue) == ["a", "b", "c", "d"]


def test_equals_of_one_that_does_not_fit_become_inadmissible_with_it() -> None:
    first, equal, other = _record("first"), _record("equal", created=1), _record("other", shape=1, created=2)
    queue = _queue(first, equal, other)
    assert queue.pop() is first
    assert not queue.requeue(first, Requeue.NO_FIT, waits_for_backoff=False)
    assert (_keys(queue.inadmissible()), _keys(queue.in_line())) == (["equal", "first"], ["other"])
    assert queue.active == 1
    queue.push(_record("later", created=3))
    assert _keys(queue.inadmissible()) == ["equal", "first", "later"]


def test_another_look_is_given_to_all_of_them_at_once() -> None:
    first = _record("first")
    queue = _queue(first, _record("equal", created=1))
    queue.pop()
    queue.requeue(first, Requeue.NO_CANDIDATES, waits_for_backoff=False)
    assert queue.release_inadmissible(lambda _: True) == 2
    assert _drain(queue) == ["first", "equal"]


def test_those_whose_namespace_is_not_selected_stay_out() -> None:
    first = _record("first")
    queue = _queue(first, _record("alien", created=1, namespace="b"))
    queue.pop()
    queue.requeue(first, Requeue.NO_FIT, waits_for_backoff=False)
    queue.release_inadmissible(lambda r: r.workload.namespace == "a")
    assert (_keys(queue.in_line()), _keys(queue.inadmissible())) == (["first"], ["alien"])


def test_without_equivalence_only_the_workload_itself_is_put_away() -> None:
    first, equal = _record("first"), _record("equal", created=1)
    queue = _queue(first, equal, hashing=False)
    queue.pop()
    queue.requeue(first, Requeue.NO_FIT, waits_for_backoff=False)
    assert _keys(queue.in_line()) == ["equal"]


def test_a_strict_queue_keeps_its_head_in_line() -> None:
    first = _record("first")
    queue = _queue(first, _record("second", created=1), strategy="StrictFIFO")
    queue.pop()
    assert queue.requeue(first, Requeue.NO_FIT, waits_for_backoff=False)
    assert queue.pop() is first
    assert not queue.requeue(first, Requeue.NAMESPACE_MISMATCH, waits_for_backoff=False)


def _do_nothing(queue: PendingQueue[Record], preemptor: Record) -> None:
    pass


def _admit(queue: PendingQueue[Record], preemptor: Record) -> None:
    queue.remove(preemptor)
    queue.push(preemptor)


def _make_inadmissible(queue: PendingQueue[Record], preemptor: Record) -> None:
    assert queue.pop() is preemptor
    queue.requeue(preemptor, Requeue.NO_FIT, waits_for_backoff=False)
    queue.release_inadmissible(lambda _: True)


def _let_another_preempt(queue: PendingQueue[Record], preemptor: Record) -> None:
    other = _record("other", priority=1, shape=2)
    queue.push(other)
    queue.remove(other, keep_sticky=True)
    queue.requeue(other, Requeue.PENDING_PREEMPTION, waits_for_backoff=False)


@pytest.mark.parametrize(
    ("happens", "order"),
    [
        (_do_nothing, ["preemptor", "urgent"]),
        (_make_inadmissible, ["preemptor", "urgent"]),
        (_admit, ["urgent", "preemptor"]),
        (_let_another_preempt, ["other", "urgent", "preemptor"]),
    ],
    ids=[
        "requeueIfNotPresent (pkg/cache/queue/cluster_queue.go): a preemptor in line comes first",
        "requeueIfNotPresent: one that was inadmissible in between still does",
        "delete: one that was admitted, or deleted, does not",
        "requeueIfNotPresent: the last one to preempt does",
    ],
)
def test_who_preempted_last_comes_first(
    happens: Callable[[PendingQueue[Record], Record], None], order: list[str]
) -> None:
    preemptor, urgent = _record("preemptor"), _record("urgent", priority=9, shape=1)
    queue = _queue(preemptor)
    queue.pop()
    queue.requeue(preemptor, Requeue.PENDING_PREEMPTION, waits_for_backoff=False)
    queue.push(urgent)
    happens(queue, preemptor)
    assert _drain(queue) == order


def test_who_has_to_stay_out_for_a_time_is_put_away_whatever_the_reason() -> None:
    record = _record("late")
    queue = _queue(record)
    queue.pop()
    assert not queue.requeue(record, Requeue.FAILED_AFTER_NOMINATION, waits_for_backoff=True)
    assert queue.release_inadmissible(lambda _: False) == 0
    assert len(queue) == 1


@dataclass
class _OneByOne:
    """The same rules, moving every workload on its own: what the classes must be equal to."""

    heap: list[Record] = field(default_factory=list)
    out: list[Record] = field(default_factory=list)
    marks: set[object] = field(default_factory=set)
    sticky: Record | None = None

    @staticmethod
    def digest(record: Record) -> object:
        return record.workload.priority, record.demand

    def push(self, record: Record) -> None:
        (self.out if self.digest(record) in self.marks else self.heap).append(record)

    def pop(self) -> Record | None:
        if not self.heap:
            return None
        order = lambda r: (r is not self.sticky, -r.workload.priority, r.workload.created, r.workload.uid)  # noqa: E731
        self.heap.sort(key=order)
        return self.heap.pop(0)

    def requeue(self, record: Record, reason: Requeue) -> None:
        if reason is Requeue.PENDING_PREEMPTION:
            self.sticky = record
        if reason in {Requeue.PENDING_PREEMPTION, Requeue.FAILED_AFTER_NOMINATION}:
            self.heap.append(record)
            return
        self.out.append(record)
        if reason in {Requeue.NO_FIT, Requeue.NO_CANDIDATES}:
            self.marks.add(self.digest(record))
            equals = [r for r in self.heap if self.digest(r) in self.marks]
            self.out += equals
            self.heap = [r for r in self.heap if r not in equals]

    def release(self) -> None:
        self.marks.clear()
        self.heap += self.out
        self.out = []

    def remove(self, record: Record) -> None:
        for place in (self.heap, self.out):
            if record in place:
                place.remove(record)
        if self.sticky is record:
            self.sticky = None


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("push"), st.integers(0, 2), st.integers(0, 1), st.integers(0, 5)),
        st.tuples(st.just("cycle"), st.sampled_from(list(Requeue)), st.just(0), st.just(0)),
        st.tuples(st.just("admit"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("release"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("remove"), st.integers(0, 20), st.just(0), st.just(0)),
        st.tuples(st.just("copy"), st.just(0), st.just(0), st.just(0)),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_classes_behave_as_if_each_workload_were_moved_on_its_own(
    steps: list[tuple[str, int | Requeue, int, int]],
) -> None:
    queue: PendingQueue[Record] = PendingQueue("BestEffortFIFO", hashing=True)
    simple, known = _OneByOne(), dict[str, Record]()
    for number, (step, what, shape, created) in enumerate(steps):
        if step == "push":
            record = _record(f"w{number:02d}", priority=int(str(what)), shape=shape, created=created)
            known[record.key] = record
            queue.push(record)
            simple.push(record)
        elif step in {"cycle", "admit"}:
            popped = queue.pop()
            assert popped is simple.pop()
            if popped is not None and isinstance(what, Requeue):
                queue.requeue(popped, what, waits_for_backoff=False)
                simple.requeue(popped, what)
            elif popped is not None:
                queue.remove(popped)
                simple.remove(popped)
        elif step == "release":
            queue.release_inadmissible(lambda _: True)
            simple.release()
        elif step == "remove" and known:
            record = list(known.values())[int(str(what)) % len(known)]
            queue.remove(record)
            simple.remove(record)
        elif step == "copy":
            queue = queue.copy({r: r for r in known.values()})
        assert _keys(queue.in_line()) == sorted(_keys(simple.heap))
        assert _keys(queue.inadmissible()) == sorted(_keys(simple.out))
        assert queue.active == len(simple.heap)
