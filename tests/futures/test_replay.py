"""The fast replay gives the same starts, preemptions and ends as the exact model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.futures import Change, Held, Job, Jobs, Setting, Starts, accepts, replay
from taskgov.scheduling.instants import SECOND
from taskgov.scheduling.objects import Admission, PodSet, PodSetAdmission, Workload
from taskgov_explain.exact_starts import exact_starts
from tests.futures.worlds import Family, draw, draw_changes

if TYPE_CHECKING:
    from collections.abc import Sequence

FAMILIES = {
    "one resource, all rules": Family(running=0.2),
    "one resource, HyperPod": Family(hyperpod=True),
    "two resources, all rules": Family(resources=2, running=0.2),
    "three resources on two types, HyperPod": Family(resources=3, flavors=2, running=0.2, hyperpod=True),
    "one resource on three types": Family(flavors=3, pod_sets=2),
    "everything": Family(resources=3, flavors=3, pod_sets=3, running=0.2),
}
Courses = dict[int, list[tuple[int, int | None, bool]]]


def courses(starts: Starts) -> Courses:
    """Return each job's stays in order."""
    found: Courses = {}
    for job, start, end, preempted in starts.stays:
        found.setdefault(job, []).append((start, end, preempted))
    return {job: sorted(stays, key=lambda stay: (stay[0], stay[1] is None, stay[1])) for job, stays in found.items()}


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_everybody_starts_and_is_preempted_when_the_exact_model_says(family: Family, seed: int) -> None:
    setting, jobs = draw(seed, family)
    _assert_the_same(setting, jobs, ())


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**9))
def test_so_they_do_while_quotas_and_rules_change(family: Family, seed: int) -> None:
    setting, jobs = draw(seed, family)
    _assert_the_same(setting, jobs, draw_changes(seed, setting, jobs))


RARE = {
    "a stale order of borrowers after a queue stops": (Family(hyperpod=True), (3, 38)),
    "a queue that borrows and may take only of its own": (Family(hyperpod=True), (100,)),
    "the same with two resources": (Family(resources=2), (95,)),
    "victims of a priority that equals the threshold": (Family(), (163,)),
    "the same threshold, two resources": (Family(resources=2), (247,)),
    "an equal priority, which is not lower": (Family(hyperpod=True), (77, 122)),
    "a head whose victims an earlier head takes": (Family(hyperpod=True), (56, 126)),
    "the same with all rules": (Family(), (87,)),
}
"""Worlds in which a wrong shortcut gives another course; in most worlds it does not."""


@pytest.mark.parametrize(("family", "seeds"), RARE.values(), ids=RARE)
def test_so_they_do_in_worlds_that_show_a_wrong_shortcut(family: Family, seeds: Sequence[int]) -> None:
    for seed in seeds:
        setting, jobs = draw(seed, family)
        _assert_the_same(setting, jobs, ())
        _assert_the_same(setting, jobs, draw_changes(seed, setting, jobs))


def _assert_the_same(setting: Setting, jobs: Jobs, changes: Sequence[Change]) -> None:
    assert accepts(setting, jobs, changes) == ()
    fast = replay(setting, jobs, changes=changes)
    exact = exact_starts(setting, jobs, changes=changes)
    assert fast.loop or not exact.loop
    if not fast.loop:
        assert courses(fast) == courses(exact)


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_the_worlds_have_waiting_borrowing_and_preemption(family: Family) -> None:
    waited = preempted = loops = 0
    for seed in range(100):
        setting, jobs = draw(seed, family)
        starts = replay(setting, jobs)
        loops += bool(starts.loop)
        preempted += any(stay.preempted for stay in starts.stays)
        waited += any(at > jobs.jobs[job].arrival for job, at in starts.first().items())
    assert waited > 35
    assert preempted > 15
    assert loops < 40


def test_a_replay_until_a_moment_leaves_open_who_still_runs() -> None:
    setting, jobs = _alone()
    assert replay(setting, jobs, until=5 * SECOND).stays == [(0, 0, None, False)]
    assert replay(setting, jobs).stays == [(0, 0, 10 * SECOND, False), (1, 11 * SECOND, 21 * SECOND, False)]
    assert replay(setting, jobs).first() == {0: 0, 1: 11 * SECOND}


def test_a_replay_ends_when_there_is_no_more_time_for_it() -> None:
    setting, jobs = _alone()
    two_moments = iter([True, True])
    found = replay(setting, jobs, goes_on=lambda: next(two_moments, False))
    assert found.stays == [(0, 0, None, False)]


def test_a_replay_of_watched_jobs_ends_when_the_last_of_them_has_started() -> None:
    setting, jobs = _alone()
    assert replay(setting, jobs, watched=(0,)).stays == [(0, 0, None, False)]
    assert replay(setting, jobs, watched=(0, 1)).stays == [(0, 0, 10 * SECOND, False), (1, 11 * SECOND, None, False)]


def test_a_running_job_without_time_left_ends_before_anybody_is_considered() -> None:
    setting, jobs = _alone()
    ends, waits = jobs.jobs
    usage = {"gpu": ends.workload.pod_sets[0].requests[0][1]}
    held = Held(Admission("q0", (PodSetAdmission("main", 1, {"gpu": "f0"}, usage),)), -SECOND)
    full = Jobs([replace(ends, held=held, remaining=0), replace(waits, arrival=0)])
    assert courses(replay(setting, full)) == courses(exact_starts(setting, full))
    assert replay(setting, full).first() == {0: 0, 1: 0}


def test_two_jobs_of_one_key_are_refused() -> None:
    _, jobs = _alone()
    with pytest.raises(ValueError, match="two jobs have one key"):
        Jobs([jobs.jobs[0], jobs.jobs[0]])


def _alone() -> tuple[Setting, Jobs]:
    """Return two jobs for one place, in a setting whose batch is a second."""
    setting, _ = next(
        found
        for seed in range(100)
        if (found := draw(seed, Family(queues=1)))[0].batch == SECOND and _has_room(found[0])
    )
    nominal = setting.queues[0].quotas["f0/gpu"].nominal
    pods = (PodSet("main", 1, (("gpu", nominal),)),)
    return setting, Jobs(
        Job(Workload("ns0", name, "door", pods, created=at, uid=name), at, 10 * SECOND) for at, name in enumerate("ab")
    )


def _has_room(setting: Setting) -> bool:
    queue = setting.queues[0]
    return queue.quotas["f0/gpu"].nominal > 0 and queue.stop_policy == "None" and queue.cohort is None
