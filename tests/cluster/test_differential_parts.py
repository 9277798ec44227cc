"""The parts of the differential test that need no cluster: what is made, cut down, kept, read and counted."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from tests.cluster.differential import report
from tests.cluster.differential.api import wordless
from tests.cluster.differential.builders import a_queue, a_sequence, submit
from tests.cluster.differential.coverage import ENOUGH, LEAST, missed
from tests.cluster.differential.extras import EXTRAS
from tests.cluster.differential.generate import generate
from tests.cluster.differential.journal import Journal
from tests.cluster.differential.modelled import ModelSide
from tests.cluster.differential.outcome import Difference, Played
from tests.cluster.differential.report import Ledger
from tests.cluster.differential.sequence import LANE, Reclaim, Scale, Submit, read, written
from tests.cluster.differential.shrink import shrink
from tests.cluster.differential.slices import a_slice, one_pod_less
from tests.cluster.kube import conditions

if TYPE_CHECKING:
    from pathlib import Path

    from taskgov.scheduling import KueueModel
    from tests.cluster.differential.sequence import Sequence
    from tests.cluster.kube import Object


@pytest.mark.parametrize("fair_sharing", [True, False])
def test_a_seed_always_gives_the_same_sequence(fair_sharing: bool) -> None:
    assert generate(7, fair_sharing=fair_sharing) == generate(7, fair_sharing=fair_sharing)
    assert generate(7, fair_sharing=fair_sharing) != generate(8, fair_sharing=fair_sharing)


def test_a_sequence_is_kept_as_it_is_and_named_anew() -> None:
    sequence = generate(3, fair_sharing=True)
    assert read(json.dumps(written(sequence))) == sequence
    assert LANE not in json.dumps(written(sequence.named("q1x")))


def test_only_the_steps_that_a_difference_needs_are_left() -> None:
    sequence = a_sequence(*(submit("a", f"job-{place:02}", 1) for place in range(12)), a=a_queue(4))
    needed = {"job-02", "job-09"}

    def differs(trials: list[Sequence]) -> list[bool]:
        return [needed <= {step.workload["metadata"]["name"] for step in trial.steps} for trial in trials]  # type: ignore[union-attr]

    left = shrink(sequence, 10, differs).steps
    assert [step.workload["metadata"]["name"] for step in left if isinstance(step, Submit)] == ["job-02", "job-09"]


def test_what_too_few_sequences_reach_is_named() -> None:
    everything = dict.fromkeys(LEAST, ENOUGH)
    assert missed(everything, ENOUGH) == []
    assert missed({**everything, "deleted": 0}, ENOUGH) == ["deleted: 0 of 100 sequences, at least 30% wanted"]
    assert missed(dict.fromkeys(LEAST, 0), ENOUGH - 1) == []


def test_other_words_of_a_condition_are_no_change_of_a_workload() -> None:
    def waits(words: str, reason: str = "Pending") -> Object:
        condition = {"type": "QuotaReserved", "status": "False", "reason": reason, "message": words}
        return {"metadata": {"name": "w", "generation": 1}, "status": {"conditions": [condition]}}

    assert wordless(waits("first")) == wordless(waits("second"))
    assert wordless(waits("first")) != wordless(waits("first", "Inadmissible"))
    assert wordless(waits("first")) != wordless({**waits("first"), "metadata": {"name": "w", "generation": 2}})


def test_every_kind_of_extra_is_drawn_and_survives_being_written() -> None:
    sequences = [generate(seed, fair_sharing=True) for seed in range(20)]
    assert {extra for one in sequences for extra in one.traits} >= set(EXTRAS)
    assert {type(step) for one in sequences for step in one.steps} >= {Reclaim, Scale}
    assert all(read(json.dumps(written(one))) == one for one in sequences)


def test_a_slice_asks_for_other_pods_and_names_what_it_replaces() -> None:
    running = submit("a", "job", 1, 2).workload
    new = a_slice(running, 2)
    namespace = running["metadata"]["namespace"]
    assert new["metadata"]["annotations"] == {"kueue.x-k8s.io/workload-slice-replacement-for": f"{namespace}/job"}
    assert [pod_set["count"] for pod_set in new["spec"]["podSets"]] == [1, 3]
    assert [pod_set["count"] for pod_set in a_slice(running, -1)["spec"]["podSets"]] == [1, 1]


def test_pods_are_done_one_by_one_until_none_is_left() -> None:
    status = {"admission": {"podSetAssignments": [{"name": "main", "count": 2}]}}
    done = [{"name": "main", "count": 1}]
    assert one_pod_less({"status": status}) == ("main", 1)
    assert one_pod_less({"status": {**status, "reclaimablePods": done}}) == ("main", 2)
    assert one_pod_less({"status": {**status, "reclaimablePods": [{"name": "main", "count": 2}]}}) is None


# What differs


class _Replays:
    """Plays a sequence again; `wrong` are the seeds that differ in the last replay."""

    def __init__(self, *wrong: int) -> None:
        self._wrong = wrong
        self.played: list[int] = []

    def play_alone(self, sequence: Sequence, times: int) -> list[Played]:
        self.played.append(sequence.seed)
        return [_played_with(sequence)] * (times - 1) + [_played_with(sequence, sequence.seed in self._wrong)]


def _played_with(sequence: Sequence, differs: bool = False) -> Played:
    found = Difference(sequence.seed, 3, "submit ns/job", "ns/job", "runs", "waits", ("uid", "created", None))
    return Played(sequence, [found] if differs else [], compared=1 if differs else 9)


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Played]:
    """A hundred sequences, of which those of seeds 5 and 8 differ."""
    monkeypatch.setattr(report, "FOLDER", tmp_path)
    plain = a_sequence(submit("a", "job", 1), a=a_queue(1))
    return [_played_with(replace(plain, seed=seed), seed in {5, 8}) for seed in range(100)]


def test_what_differs_among_others_only_is_reported_and_counted_and_its_replay_is_what_was_compared(
    played: list[Played],
) -> None:
    ledger, replays = Ledger(), _Replays()
    assert [one.differences for one in ledger.take(played, replays)] == [[]] * 100
    assert replays.played == [5, 8]
    told = "\n".join(ledger.lines)
    assert "900 states of workloads compared" in told
    assert "2 differed among others and in none of 3 replays alone" in told
    assert "seed 8, step 3" in told
    assert len(list(report.FOLDER.glob("*.log"))) == 2


def test_what_differs_in_one_replay_too_is_a_difference(played: list[Played]) -> None:
    ledger = Ledger()
    assert [one.sequence.seed for one in ledger.take(played, _Replays(8)) if one.differences] == [8]
    assert "1 differed among others" in "\n".join(ledger.lines)
    assert "100 sequences, 1 differences" in ledger.lines[0]


def test_when_many_differ_time_is_not_to_blame_and_none_is_played_again(played: list[Played]) -> None:
    many = [_played_with(one.sequence, one.sequence.seed < 5) for one in played]
    replays = _Replays()
    assert len([one for one in Ledger().take(many, replays) if one.differences]) == 5
    assert replays.played == []


# The log


def test_a_sequence_rests_when_two_cycles_that_began_after_its_last_stir_say_nothing_new(tmp_path: Path) -> None:
    log = _Log(tmp_path)
    log.says("Workload create event", workload={"namespace": "ns-q1x", "name": "job"})
    assert not log.rests("q1x")
    log.cycles()
    log.cycles("job")
    assert not log.rests("q1x")
    log.cycles("job")
    assert not log.rests("q1x")
    log.cycles("job")
    assert log.rests("q1x")


def test_a_workload_that_is_put_in_line_when_a_cycle_has_begun_is_looked_at_in_the_next(tmp_path: Path) -> None:
    log = _Log(tmp_path)
    log.says("Workload create event", workload={"namespace": "ns-q1x", "name": "job"})
    log.cycles()
    assert not log.rests("q1x")


def test_a_scheduler_that_is_held_up_in_a_cycle_for_however_long_does_not_rest(tmp_path: Path) -> None:
    """A step in the midst of a search over flavors lets the search end with other quotas than it began with."""
    log = _Log(tmp_path)
    log.says("Workload create event", workload={"namespace": "ns-q1x", "name": "job"})
    log.cycles("job")
    log.says("Scheduling cycle starts")  # ten seconds ago, and nothing since
    assert not log.rests("q1x")


def test_what_became_inadmissible_lets_the_next_in_line_be_waited_for(tmp_path: Path) -> None:
    log = _Log(tmp_path)
    log.says("Workload create event", workload={"namespace": "ns-q1x", "name": "job"})
    log.cycles("job")
    log.says("Workload couldn't be admitted.", clusterQueue="q1x-queue")
    assert not log.rests("q1x")
    log.cycles()
    log.cycles()
    assert log.rests("q1x")


def test_a_search_that_continues_with_the_next_flavor_is_waited_for_but_not_one_that_goes_round(tmp_path: Path) -> None:
    log = _Log(tmp_path)
    log.says("Workload create event", workload={"namespace": "ns-q1x", "name": "job"})
    rested = []
    for _ in range(10):
        log.says("Scheduling cycle starts")
        log.says("Obtained heads")
        log.says("Attempting to schedule workload", workload={"namespace": "ns-q1x", "name": "job"})
        log.says("Workload re-queued", workload={"namespace": "ns-q1x", "name": "job"}, requeueReason="NoFit")
        log.says("Scheduling cycle complete")
        rested.append(log.rests("q1x"))
    assert rested == [False] * 9 + [True]


def test_changed_words_of_a_status_do_not_keep_a_sequence_from_resting(tmp_path: Path) -> None:
    log = _Log(tmp_path)
    log.says("Workload create event", workload={"namespace": "ns-q1x", "name": "job"})
    for _ in range(3):
        log.cycles("job")
    log.says("Workload update event", workload={"namespace": "ns-q1x", "name": "job"}, status="pending")
    assert log.rests("q1x")


def test_the_status_of_a_local_queue_is_no_news_but_its_change_is_waited_for(tmp_path: Path) -> None:
    """Each cycle in which a strict queue's head goes round changes that status; on a slow machine that never ends."""
    log = _Log(tmp_path)
    log.says("Workload create event", workload={"namespace": "ns-q1x", "name": "job"})
    for _ in range(3):
        log.cycles("job")
        log.says("Queue update event", localQueue={"name": "q1x-localqueue", "namespace": "ns-q1x"})
    assert log.rests("q1x")
    changed = log.now
    assert not log.journal.rests("q1x", changed, batch=False, cohort=True, door=True)
    log.says("Queue update event", localQueue={"name": "q1x-localqueue", "namespace": "ns-q1x"})
    log.cycles("job")
    log.cycles("job")
    assert not log.journal.rests("q1x", changed, batch=False, cohort=True, door=True)
    log.now += 1
    log.cycles("job")
    log.cycles("job")
    assert log.journal.rests("q1x", changed, batch=False, cohort=True, door=True)


def test_another_look_at_the_inadmissible_is_waited_for_and_may_come_too_early(tmp_path: Path) -> None:
    log = _Log(tmp_path)
    log.says("Workload update event", workload={"namespace": "ns-q1x", "name": "job"}, prevStatus="admitted")
    log.cycles()
    log.cycles()
    assert log.rests("q1x")
    assert not log.rests("q1x", batch=True)
    log.says("Attempting to move workloads", rootCohort="pool-q1x")
    log.cycles()
    log.cycles()
    assert log.rests("q1x", batch=True)
    assert not log.journal.was_hurried("q1x", 0)
    log.says("Workload update event", workload={"namespace": "ns-q1x", "name": "job"}, prevStatus="admitted")
    log.says("Attempting to move workloads", rootCohort="pool-q1x")
    log.cycles()
    log.cycles()
    assert log.rests("q1x")
    assert log.journal.was_hurried("q1x", 0)
    log.says("Attempting to move workloads", rootCohort="pool-q1x")
    assert log.journal.was_hurried("q1x", 0)


class _Log:
    """A log as Kueue writes it, with the journal that follows it; every line is a millisecond later than the last."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "kueue.log"
        self._path.touch()
        self.now = time.time() - 10
        self.journal = Journal(self._path)
        self.journal.stop()

    def says(self, message: str, **said: object) -> None:
        self.now += 0.001
        moment = datetime.fromtimestamp(self.now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.journal.take(
            json.dumps({"level": "Level(-2)", "ts": moment, "msg": message, **said}, separators=(",", ":"))
        )

    def cycles(self, *looked_at: str) -> None:
        self.says("Scheduling cycle starts")
        self.says("Obtained heads")
        for name in looked_at:
            self.says("Attempting to schedule workload", workload={"namespace": "ns-q1x", "name": name})
        self.says("Scheduling cycle complete")

    def rests(self, lane: str, *, batch: bool = False) -> bool:
        return self.journal.rests(lane, 0, batch=batch, cohort=True)


# The model's side

_EQUALS = a_sequence(
    submit("c", "runs", 1), submit("a", "one", 1), submit("b", "two", 1), a=a_queue(0), b=a_queue(0), c=a_queue(1)
)
"""Two that want the same GPU, which another has."""


def test_the_model_records_what_every_look_of_a_step_said() -> None:
    model, [key] = _played(a_sequence(submit("a", "never-fits", 1, 9), a=a_queue(2, 2)))
    assert len(model.said(key)) == 2
    assert model.possible == 1


def test_the_model_stands_in_every_way_in_which_it_may_go_round() -> None:
    strict = a_queue(2, 2, queueingStrategy="StrictFIFO")
    model, [key] = _played(a_sequence(submit("a", "never-fits", 1, 9), a=strict))
    assert model.possible == 2
    shown = _words(model, key)
    assert model.keep(lambda world: _words_in(world, key) != shown)
    assert _words(model, key) != shown
    assert model.possible == 2


def test_what_was_reconsidered_while_the_model_goes_round_is_not_reconsidered_in_a_later_step() -> None:
    """Seen with a slice that Kueue left inadmissible, and the model admitted for a deletion two steps before."""
    strict = a_queue(2, 2, queueingStrategy="StrictFIFO")
    model, [_, gone] = _played(
        a_sequence(submit("a", "never-fits", 1, 9), submit("b", "gone", 1), a=strict, b=a_queue(1))
    )
    model.delete(gone)
    assert all(world.has_notified for world in model._worlds)
    model.settle(_at_any_time)
    assert model.possible == 2
    assert not any(world.has_notified for world in model._worlds)


def test_a_hurried_model_lets_the_inadmissible_in_before_those_in_line_are_through() -> None:
    low, high = submit("a", "low", 2), submit("a", "high", 2, priority=1)
    never = a_queue(2, preemption={"withinClusterQueue": "Never"})
    sequence = a_sequence(submit("a", "runs", 2, priority=2), high, submit("b", "waits", 2), low, a=never, b=a_queue(0))
    model, [runs, *_] = _played(sequence)
    model.finish(runs)
    model.settle(_at_any_time)
    assert model.possible == 1
    assert model.settle_hurriedly(_at_any_time)


def test_a_search_that_goes_round_is_never_taken_for_one_that_was_left_for_a_while() -> None:
    """Freed quota lets only a search start anew that was not made in the last cycle; then `round` would be admitted."""
    queue = a_queue(3, 1, preemption={"withinClusterQueue": "LowerPriority"})
    steps = submit("a", "fills", 3), submit("a", "stays", 1, priority=2)
    model, [fills, _] = _played(a_sequence(*steps, a=queue))
    model.finish(fills)
    model.settle(_at_any_time)
    later = submit("a", "victim", 1), submit("a", "ends", 1, priority=2), submit("a", "high", 3, priority=1)
    going_round, between = submit("a", "round", 1, 1), submit("a", "never-fits", 9, priority=1)
    _, ends, high, going, _ = _submitted(model, a_sequence(*later, going_round, between, a=queue), 2)
    assert model.possible == 2
    model.finish(ends)
    model.settle(_at_any_time)
    assert str(_words(model, high)).endswith("Pending the preemption of 1 workload(s)")
    assert not model.keep(lambda world: world.admission(going) is not None)


def test_the_model_stands_as_kueue_may_when_equals_of_two_queues_come_in_either_order() -> None:
    model, [runs, one, two] = _played(_EQUALS, second=0)
    model.finish(runs)
    model.settle(_at_any_time)
    assert (model.possible, model.holds_quota(one), model.holds_quota(two)) == (1, True, False)
    model.settle_in_any_turn(_at_any_time)
    assert model.keep(lambda world: world.admission(two) is not None)
    assert (model.holds_quota(one), model.holds_quota(two)) == (False, True)


def test_the_model_stands_as_kueue_may_when_equals_change_their_order_from_cycle_to_cycle() -> None:
    """In the first cycle `two` comes first and preempts; in the next one `one` does, and takes what is free."""
    preemption = {
        "withinClusterQueue": "LowerPriority",
        "reclaimWithinCohort": "Any",
        "borrowWithinCohort": {"policy": "LowerPriority"},
    }
    a, b, c = (a_queue(amount, preemption=preemption) for amount in (1, 2, 1))
    steps = submit("b", "low", 2), submit("c", "leaves", 2), submit("a", "one", 2, priority=1)
    sequence = a_sequence(*steps, submit("b", "two", 3, priority=1), fair_sharing=False, a=a, b=b, c=c)
    model, [low, leaves, one, two] = _played(sequence, second=0)
    model.release(leaves)
    model.settle(_at_any_time)
    assert (model.holds_quota(one), _is_evicted(model, low)) == (True, False)
    model.settle_in_any_turn(_at_any_time)
    assert model.keep(lambda world: world.admission(one) is not None and "Evicted" in conditions(world.workload(low)))
    assert (model.holds_quota(one), _is_evicted(model, low), model.holds_quota(two)) == (True, True, False)


def test_the_model_stands_as_kueue_may_when_a_victim_is_late_in_line_by_two_cycles() -> None:
    """In the first cycle `high` starts, in the second `next`, which the victim would keep waiting."""
    strict = a_queue(2, queueingStrategy="StrictFIFO")
    steps = submit("a", "victim", 2), submit("a", "next", 1), submit("a", "high", 1, priority=1)
    model, [victim, behind, high] = _played(a_sequence(*steps, fair_sharing=False, a=strict))
    model.release(victim)
    model.settle(_at_any_time)
    assert (model.holds_quota(high), model.holds_quota(behind)) == (True, False)
    model.settle_with_late_return(victim, _at_any_time)
    assert model.keep(lambda world: world.admission(behind) is not None)
    assert (model.holds_quota(high), model.holds_quota(victim)) == (True, False)


def _is_evicted(model: ModelSide, key: str) -> bool:
    return "Evicted" in conditions(model.workload(key))


def _played(sequence: Sequence, *, second: int | None = None) -> tuple[ModelSide, list[str]]:
    named = sequence.named("q1x")
    model = ModelSide(list(named.objects), fair_sharing=sequence.fair_sharing)
    return model, _submitted(model, sequence, 0, second=second)


def _submitted(model: ModelSide, sequence: Sequence, first: int, *, second: int | None = None) -> list[str]:
    """Submit what a sequence submits, as the workloads from number `first` on; return their keys."""
    keys = []
    for place, step in enumerate(sequence.named("q1x").steps, start=first):
        assert isinstance(step, Submit)
        stored = _stored(step.workload, place, place if second is None else second)
        keys.append(f"{stored['metadata']['namespace']}/{stored['metadata']['name']}")
        model.submit(stored)
        model.settle(_at_any_time)
    return keys


def _stored(workload: Object, place: int, second: int) -> Object:
    created = {"uid": f"uid-{place}", "creationTimestamp": f"2026-11-20T09:00:{second:02}Z"}
    return {**workload, "metadata": {**workload["metadata"], **created}}


def _at_any_time(key: str) -> str | None:
    return None


def _words(model: ModelSide, key: str) -> object:
    return model.workload(key)["status"]["conditions"][0]["message"]


def _words_in(world: KueueModel, key: str) -> object:
    return world.workload(key)["status"]["conditions"][0]["message"]
