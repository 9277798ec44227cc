"""The record of random lives of Workloads is the truth, but for what nobody saw: that is marked."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.usage.workload_facts import Told, WorkloadFacts
from taskgov.work.attempt import Attempt, End
from taskgov.work.follow import advance
from taskgov.work.measured import Span, union
from taskgov.work.memory import WorkMemory, rows_of_tracked
from tests.work.lives import PERIOD, START, World

MINUTES = 60
SEEDS = st.integers(0, 2**32)


def chance_of(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - what happens, not a secret


def minutes(chance: random.Random, *, skips: bool) -> list[datetime]:
    """Return when somebody looks: each minute, a little late, and sometimes not at all."""
    jitter = [timedelta(seconds=chance.randrange(20)) for _ in range(MINUTES)]
    return [START + n * PERIOD + late for n, late in enumerate(jitter) if not skips or chance.random() > 0.15]


def truth(world: World, until: datetime) -> dict[tuple[str, int], Attempt]:
    """Return the attempts that really ended up to the last measurement."""
    ended = (attempt for life in world.lives for attempt in life.attempts)
    return {(one.uid, one.number): one for one in ended if one.ended and one.ended <= until}


def recorded(world: World) -> dict[tuple[str, int], Attempt]:
    """Return what is on record; no attempt is there twice."""
    found = world.memory.unwritten.attempts
    by_number = {(one.uid, one.number): one for one in found}
    assert len(by_number) == len(found)
    return by_number


def longest_pause(world: World) -> timedelta:
    looks = [START, *world.looks]
    return max(after - before for before, after in pairwise(looks))


@given(SEEDS)
def test_who_follows_sees_everything_whatever_comes_twice_or_is_left_out(seed: int) -> None:
    chance = chance_of(seed)
    world = World.of(chance)
    for at in minutes(chance, skips=True):
        for _ in range(chance.choice((1, 1, 2))):
            world.look(at, follows=True)
    real = truth(world, world.looks[-1])
    for key, attempt in recorded(world).items():
        if attempt.end is End.GONE:
            assert real[key].end is End.GONE
            assert timedelta() <= (attempt.ended or START) - (real[key].ended or START) <= longest_pause(world)
        elif attempt.uid in {life.uid for life in world.lives if life.states[0][0] > world.looks[0]}:
            assert attempt == real[key]
    seen_from_birth = {life.uid for life in world.lives if life.states[0][0] > world.looks[0]}
    assert {key for key in real if key[0] in seen_from_birth} == {
        key for key in recorded(world) if key[0] in seen_from_birth
    }


@given(SEEDS, st.booleans())
def test_what_is_not_inferred_is_true_however_little_was_seen(seed: int, follows: bool) -> None:
    """Changes and memories are lost, looks are left out, old looks come late: nothing wrong is on record."""
    chance = chance_of(seed)
    world = World.of(chance)
    old = None
    for at in minutes(chance, skips=True):
        world.look(at, follows=follows and chance.random() > 0.2)
        if old is not None and chance.random() < 0.1:
            before = world.memory
            world.look(old, follows=False)
            world.looks.pop()
            assert world.memory is before
        if chance.random() < 0.05:  # what is in the files of days stays
            world.memory = WorkMemory(unwritten=world.memory.unwritten)
        old = at
    for life in world.lives:
        for attempt in (one for one in world.memory.unwritten.attempts if one.uid == life.uid):
            if not attempt.inferred and life.counts:
                assert attempt in [*life.attempts, *(_unknown_admission(real) for real in life.attempts)]
            elif not attempt.inferred:
                assert (attempt.ended, attempt.end) in [(real.ended, real.end) for real in life.attempts]


def _unknown_admission(attempt: Attempt) -> Attempt:
    return replace(attempt, admitted=None)


def evictions(item: dict[str, Any] | None) -> int:
    stats = (item or {}).get("status", {}).get("schedulingStats", {"evictions": []})
    return sum(one["count"] for one in stats["evictions"])


@given(SEEDS)
def test_who_only_lists_has_a_record_of_each_attempt_that_a_look_could_see(seed: int) -> None:
    """Where Kueue counts evictions: also of those between two measurements, for as long as the Workload is there."""
    chance = chance_of(seed)
    world = World.of(chance)
    for at in minutes(chance, skips=True):
        world.look(at, follows=False)
    found = recorded(world)
    for life in (life for life in world.lives if life.counts):
        looks = [at for at in world.looks if life.at(at) is not None]
        if not looks:
            assert not [key for key in found if key[0] == life.uid]
            continue
        seen = {one.number for one in life.attempts if one.ended and one.ended <= looks[-1]}
        numbers = {number for uid, number in found if uid == life.uid}
        assert numbers >= seen - set(range(1, 1 + evictions(life.at(looks[0]))))
        assert numbers <= {one.number for one in life.attempts}
        for key, attempt in found.items():
            if key[0] == life.uid and attempt.end is End.EVICTED and attempt.ended:
                real = next(one for one in life.attempts if one.number == attempt.number)
                pause = longest_pause(world) + timedelta(seconds=31)
                assert abs(attempt.ended - (real.ended or START)) <= pause


@given(SEEDS)
def test_measured_is_a_period_after_each_look_and_the_time_between_two_that_follow_each_other(seed: int) -> None:
    chance = chance_of(seed)
    world = World.of(chance, 0)
    looks = minutes(chance, skips=True)
    for at in looks:
        world.look(at, follows=False)
    expected = [
        Span(before, after if after - before <= 1.5 * PERIOD else before + PERIOD) for before, after in pairwise(looks)
    ]
    assert world.memory.unwritten.measured == union(expected)


@pytest.mark.parametrize("seed", range(3))
def test_a_memory_is_stored_and_read_between_any_two_looks(seed: int) -> None:
    chance, other = chance_of(seed), chance_of(seed)
    kept, stored = World.of(chance), World.of(other)
    for at in minutes(chance_of(seed), skips=True):
        kept.look(at, follows=True)
        stored.look(at, follows=True)
        stored.memory = WorkMemory.from_bytes(stored.memory.to_bytes())
    assert kept.memory == stored.memory


@pytest.mark.parametrize("seed", range(12))
def test_a_process_that_keeps_states_and_rows_has_the_memory_of_one_that_does_not(seed: int) -> None:
    kept, read = World.of(chance_of(seed)), World.of(chance_of(seed))
    known: dict[WorkloadFacts, WorkloadFacts] = {}
    rows = rows_of_tracked()
    for at in minutes(chance_of(seed), skips=True):
        look = kept.seen_at(at, follows=True)
        states = tuple(known.setdefault(facts, facts) for facts in look.states)
        told = tuple(Told(known.setdefault(one.facts, one.facts), one.is_last) for one in look.told)
        kept.memory = advance(kept.memory, replace(look, states=states, told=told))
        read.look(at, follows=True)
        assert kept.memory.to_bytes(rows) == read.memory.to_bytes()
        read.memory = WorkMemory.from_bytes(read.memory.to_bytes())
    assert any(tracked.state in known for tracked in kept.memory.tracked.values())
