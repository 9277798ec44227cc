"""A setting and jobs out of a model: what a snapshot holds is replayed as the exact model goes on from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskgov.futures import accepts, jobs_of, obstacles, replay, setting_of
from taskgov.scheduling import instant
from taskgov.scheduling.instants import SECOND
from taskgov_explain.exact_starts import exact_starts, starts
from tests.futures.test_replay import courses
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    NOW,
    a_condition,
    a_door,
    a_job,
    a_queue,
    a_running_job,
    a_world,
)

if TYPE_CHECKING:
    from taskgov.scheduling import KueueModel, Workload
    from taskgov.scheduling.instants import Instant

AT = instant(NOW)


def _lasts(_: Workload, since: Instant | None) -> tuple[int, int | None]:
    """Everybody runs for a minute; who runs already still for ten seconds."""
    return 60 * SECOND, None if since is None else 10 * SECOND


def _world() -> KueueModel:
    return a_world(
        a_queue("a", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_running_job("guest", "b", cpu="3", since="2026-11-20T08:30:00Z"),
        a_running_job("own", "b", cpu="1", since="2026-11-20T08:40:00Z"),
        a_job("owner", "a", cpu="2", second=1),
        a_job("next", "b", cpu="2", second=2),
        fair_sharing=True,
    )


def test_a_model_is_replayed_as_it_continues_itself() -> None:
    world = _world()
    setting, jobs = setting_of(world), jobs_of(world, AT, _lasts)
    assert (obstacles(world), accepts(setting, jobs)) == ((), ())
    fast = replay(setting, jobs)
    assert courses(fast) == courses(exact_starts(setting, jobs)) == courses(exact_starts(setting, jobs, world=world))
    keys = [job.workload.name for job in jobs.jobs]
    reclaimed = [(keys[stay.job], stay.start - AT) for stay in fast.stays if stay.preempted]
    assert reclaimed == [("guest", 0)]
    assert fast.first()[keys.index("owner")] == AT


def test_other_run_times_are_another_future() -> None:
    world = _world()
    setting, jobs = setting_of(world), jobs_of(world, AT, _lasts)
    longer = jobs.lasting([90 * SECOND] * 4, [20 * SECOND if job.held else None for job in jobs.jobs])
    changed = replay(setting, longer)
    assert courses(changed) == courses(exact_starts(setting, longer))
    assert courses(changed) != courses(replay(setting, jobs))
    assert jobs.jobs[0].run_time == 60 * SECOND


@pytest.mark.parametrize(
    ("condition", "why"),
    [
        (a_condition("Evicted", reason="Preempted"), "a job is evicted and still holds quota"),
        (None, "a job has admission checks"),
    ],
)
def test_a_state_that_is_more_than_the_jobs_is_an_obstacle(condition: dict[str, object] | None, why: str) -> None:
    running = a_running_job("one", "a", cpu="1")
    if condition is None:
        running["status"]["admissionChecks"] = [{"name": "check", "state": "Pending"}]
    else:
        running["status"]["conditions"].append(condition)
    assert why in obstacles(a_world(a_queue("a", cpu="2"), running))


def test_what_the_fast_replay_cannot_do_is_done_by_the_exact_model() -> None:
    world = a_world(
        a_queue("a", cpu="2", queueingStrategy="StrictFIFO"), a_job("one", "a", cpu="1"), a_job("two", "a", cpu="1")
    )
    setting, jobs = setting_of(world), jobs_of(world, AT, _lasts)
    assert accepts(setting, jobs) == ("queue a is StrictFIFO",)
    assert starts(setting, jobs).first() == {0: AT, 1: AT}
    assert starts(setting, jobs, world=world).first() == {0: AT, 1: AT}
    assert world.pending("a")[0] == ["default/one", "default/two"]


def _with_door(stop_policy: str, *jobs: dict[str, object]) -> tuple[str, ...]:
    """Return why a model whose only LocalQueue has a stop policy needs the exact model."""
    door = a_door("a")
    world = a_world(a_queue("a", cpu="2"), {**door, "spec": {**door["spec"], "stopPolicy": stop_policy}}, *jobs)
    return accepts(setting_of(world), jobs_of(world, AT, _lasts))


def test_who_waits_at_a_stopped_local_queue_never_starts() -> None:
    door = a_door("a")
    world = a_world(
        a_queue("a", cpu="2"), {**door, "spec": {**door["spec"], "stopPolicy": "Hold"}}, a_job("one", "a", cpu="1")
    )
    setting, jobs = setting_of(world), jobs_of(world, AT, _lasts)
    assert accepts(setting, jobs) == ()
    assert replay(setting, jobs).stays == list(exact_starts(setting, jobs, world=world).stays) == []


def test_who_runs_from_a_stopped_local_queue_needs_the_exact_model() -> None:
    assert _with_door("Hold", a_running_job("one", "a", cpu="1")) == (
        "a job runs in queue a, to which its LocalQueue does not lead now",
    )
    assert _with_door("HoldAndDrain") == ("LocalQueue default/a is drained",)


@pytest.mark.parametrize(
    ("gate", "reasons"),
    [("DisableWaitForPodsReady", ()), ("PartialAdmission", ("feature gate PartialAdmission is off",))],
)
def test_a_gate_matters_where_it_changes_a_decision(gate: str, reasons: tuple[str, ...]) -> None:
    world = a_world(a_queue("a", cpu="2"), gates={gate: gate.startswith("Disable")})
    assert accepts(setting_of(world), jobs_of(world, AT, _lasts)) == reasons
