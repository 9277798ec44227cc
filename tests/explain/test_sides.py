"""The two sides of a what-if question: the cluster as it goes on, and with a plan written wave by wave."""

from dataclasses import replace
from datetime import timedelta

import pytest

from taskgov.allocation.plan import Change
from taskgov.allocation.written import WrittenCluster
from taskgov.hyperpod.model import ActivationState
from taskgov.snapshot.model import Snapshot
from taskgov_explain.courses import Begin, courses
from taskgov_explain.sides import as_supposed, sides_of
from tests.support.lab import Lab, workload
from tests.support.memory import NOON
from tests.support.plans import instances, update


def after_a_shortage() -> Snapshot:
    """Three of six machines were gone: ant has 1 and bee 2, bee's job still runs on 4, and ant's job of 2 waits."""
    lab = Lab(fair_share=False).team("ant", 2, borrow=0).team("bee", 4, borrow=0).machines(6)
    lab.submit("bee", "long", pods=4)
    cluster = WrittenCluster(lab.snapshot())
    cluster.write([update(0, "ant", "quota0000000", 2, 1), update(1, "bee", "quota0000001", 4, 2)])
    short = cluster.snapshot()
    waiting = workload("ant", "wants", 1, pods=2, created=NOON)
    return replace(short, kueue=replace(short.kueue, workloads=(*short.kueue.workloads, waiting)))


def raises(ant: int, bee: int) -> list[Change]:
    """Give both teams their machines back, each in a wave."""
    changes = [
        replace(update(0, "ant", "quota0000000", 1, 2, version=2), wave=ant),
        replace(update(1, "bee", "quota0000001", 2, 4, version=2), wave=bee),
    ]
    return sorted(changes, key=lambda change: change.wave)


@pytest.mark.parametrize(("ant", "bee", "lost"), [(1, 2, 1), (1, 1, 1), (2, 1, 0)])
def test_who_is_preempted_in_any_wave_in_whatever_order_is_lost(ant: int, bee: int, lost: int) -> None:
    snapshot = after_a_shortage()
    _, after = sides_of(snapshot, snapshot, raises(ant, bee))
    assert len(after.losses) == lost
    assert {(each.preemptor, each.reason) for each in after.losses.values()} == (
        {("hyperpod-ns-ant/pytorchjob-wants-a1b2c", "InCohortReclamation")} if lost else set()
    )
    assert not after.loop
    assert not after.not_settled


def test_an_old_plan_without_waves_is_written_at_once() -> None:
    snapshot = after_a_shortage()
    _, after = sides_of(snapshot, snapshot, raises(0, 0))
    assert after.state("hyperpod-ns-ant/pytorchjob-wants-a1b2c") == "runs"
    assert after.state("hyperpod-ns-bee/pytorchjob-long-a1b2c") == "runs"


def test_the_other_side_is_left_alone() -> None:
    snapshot = after_a_shortage()
    before, after = sides_of(snapshot, snapshot, raises(2, 1))
    assert before.state("hyperpod-ns-ant/pytorchjob-wants-a1b2c") == "waits"
    assert after.state("hyperpod-ns-ant/pytorchjob-wants-a1b2c") == "runs"
    assert after.state("hyperpod-ns-ant/nobody") == "absent"


def test_what_is_not_supposed_stays_as_the_cluster_has_it() -> None:
    snapshot = after_a_shortage()
    assert as_supposed(snapshot, snapshot) is snapshot
    disabled = snapshot.quotas[0].model_copy(update={"activation_state": ActivationState.DISABLED})
    supposed = as_supposed(snapshot, replace(snapshot, quotas=(disabled, snapshot.quotas[1])))
    ant, bee = supposed.kueue.cluster_queues
    assert ant["spec"]["stopPolicy"] == "Hold"
    assert bee == snapshot.kueue.cluster_queues[1]


def test_queues_of_supposed_quotas_are_as_rendered_on_both_sides() -> None:
    snapshot = after_a_shortage()
    edited = tuple({**each, "spec": {**each["spec"], "preemption": {}}} for each in snapshot.kueue.cluster_queues)
    snapshot = replace(snapshot, kueue=replace(snapshot.kueue, cluster_queues=edited))
    taller = snapshot.quotas[0].model_copy(update={"compute_quota_config": instances(3)})
    supposed = as_supposed(snapshot, replace(snapshot, quotas=(taller, snapshot.quotas[1])))
    for side in sides_of(snapshot, supposed, ()):
        ant, bee = side.at_rest.kueue.cluster_queues
        assert ant["spec"]["preemption"]
        assert not bee["spec"]["preemption"]


def test_over_time_what_a_wave_preempts_counts_and_continues_where_it_was() -> None:
    snapshot = after_a_shortage()
    before, after = sides_of(snapshot, snapshot, raises(1, 2))
    old, new = (Begin(each.snapshot, each.world, each.preempted) for each in (before, after))
    times = {
        "hyperpod-ns-bee/pytorchjob-long-a1b2c": timedelta(hours=3),
        "hyperpod-ns-ant/pytorchjob-wants-a1b2c": timedelta(hours=1),
    }
    by_job = {each.workload: each for each in courses(snapshot, old, new, times)}
    assert (by_job["bee/long"].preemptions_before, by_job["bee/long"].preemptions_after) == (0, 1)
    # It ran for an hour before the snapshot, and comes back as soon as its own quota does.
    assert by_job["bee/long"].ends_before == by_job["bee/long"].ends_after == NOON + timedelta(hours=2)
    assert (by_job["ant/wants"].starts_before, by_job["ant/wants"].starts_after) == (None, NOON)
