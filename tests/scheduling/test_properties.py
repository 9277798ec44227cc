"""What must hold in every cluster under HyperPod's configuration, whatever happens in it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.scheduling import settle
from taskgov.scheduling.nomination import Head
from tests.scheduling.builders import HYPERPOD_PREEMPTION, NOW, Object, a_job, a_queue, a_world

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.scheduling import CycleResult, KueueModel

FR = "gpu/cpu"
TEAMS = "abcd"


@dataclass(frozen=True)
class Cluster:
    """A random HyperPod cluster: teams with their quotas, and jobs in the order in which they come."""

    fair_sharing: bool
    teams: tuple[Mapping[str, Any], ...]
    jobs: tuple[tuple[int, int, int], ...]

    def queues(self) -> list[Object]:
        return [
            a_queue(
                TEAMS[i],
                cohort="shared-pool",
                cpu=team["cpu"],
                preemption=HYPERPOD_PREEMPTION | {"withinClusterQueue": team["within"]},
                flavorFungibility={"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
                fairSharing={"weight": team["weight"]},
            )
            for i, team in enumerate(self.teams)
        ]

    def job(self, number: int) -> Object:
        team, cpu, priority = self.jobs[number]
        return a_job(f"j{number:02d}", TEAMS[team % len(self.teams)], cpu=str(cpu), priority=priority, second=number)

    def world(self) -> KueueModel:
        return a_world(*self.queues(), fair_sharing=self.fair_sharing)


@st.composite
def _team(draw: st.DrawFn) -> Mapping[str, Any]:
    nominal = draw(st.integers(0, 6))
    borrow, lend = draw(
        st.sampled_from([(None, None), (str(nominal // 2), None), ("0", None), ("0", "0"), (None, str(nominal // 2))]),
    )
    return {
        "cpu": (str(nominal), borrow, lend),
        "within": draw(st.sampled_from(["LowerPriority", "Never"])),
        "weight": draw(st.sampled_from(["0", "1", "3", "10"])),
    }


CLUSTERS = st.builds(
    Cluster,
    fair_sharing=st.booleans(),
    teams=st.lists(_team(), min_size=2, max_size=4).map(tuple),
    jobs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 6), st.integers(0, 2)), max_size=10).map(tuple),
)
EXAMPLES = settings(max_examples=80, deadline=None)


def _teams(world: KueueModel) -> list[str]:
    return sorted(world.cluster_queues())


def _nominal(world: KueueModel, team: str) -> int:
    return world.quota(team).nominal[FR]


def _usage(world: KueueModel, team: str) -> int:
    return world.quota(team).usage.get(FR, 0)


def _assert_conserved(world: KueueModel) -> None:
    """What is borrowed is somebody's unused quota, and nobody uses more than there is."""
    borrowed = sum(max(0, _usage(world, team) - _nominal(world, team)) for team in _teams(world))
    unused = sum(max(0, _nominal(world, team) - _usage(world, team)) for team in _teams(world))
    assert borrowed <= unused
    assert sum(_usage(world, team) for team in _teams(world)) <= sum(_nominal(world, team) for team in _teams(world))
    assert world.quota("shared-pool", cohort=True).available.get(FR, 0) >= 0


def _assert_only_borrowers_are_taken_from(world: KueueModel, before: Mapping[str, int], result: CycleResult) -> None:
    for victim in result.preempted:
        if victim.cluster_queue != victim.preemptor_queue:
            assert before[victim.cluster_queue] > _nominal(world, victim.cluster_queue)


@EXAMPLES
@given(CLUSTERS, st.lists(st.integers(0, 9), max_size=10))
def test_nothing_is_borrowed_that_is_used_and_nobody_at_home_is_a_victim(cluster: Cluster, finish: list[int]) -> None:
    world = cluster.world()
    for number in range(len(cluster.jobs)):
        world.apply(cluster.job(number))
        before = {team: _usage(world, team) for team in _teams(world)}
        result = world.cycle(NOW)
        _assert_only_borrowers_are_taken_from(world, before, result)
        _assert_conserved(world)
        for victim in result.preempted:
            world.finish_eviction(victim.workload, NOW)
        if number < len(finish):
            key = f"default/j{finish[number]:02d}"
            if key in set(world.workloads()) and world.admission(key) is not None:
                world.delete("Workload", key.removeprefix("default/"), "default")
        world.requeue_inadmissible()
        _assert_conserved(world)


@EXAMPLES
@given(CLUSTERS, st.integers(1, 3))
def test_workloads_of_one_size_never_preempt_one_another_for_ever(cluster: Cluster, size: int) -> None:
    _assert_settles(replace(cluster, jobs=tuple((team, size, priority) for team, _, priority in cluster.jobs)))


@EXAMPLES
@given(CLUSTERS)
def test_without_fair_sharing_and_priorities_nobody_is_preempted_for_ever(cluster: Cluster) -> None:
    same = tuple((team, cpu, 0) for team, cpu, _ in cluster.jobs)
    _assert_settles(replace(cluster, fair_sharing=False, jobs=same))


@EXAMPLES
@given(CLUSTERS)
def test_without_fair_sharing_nobody_is_preempted_for_ever_where_no_team_preempts_its_own(cluster: Cluster) -> None:
    teams = tuple({**team, "within": "Never"} for team in cluster.teams)
    _assert_settles(replace(cluster, fair_sharing=False, teams=teams))


def _assert_settles(cluster: Cluster) -> None:
    world = cluster.world()
    for number in range(len(cluster.jobs)):
        world.apply(cluster.job(number))
        assert settle(world, NOW).settled


@EXAMPLES
@given(CLUSTERS)
def test_where_the_rules_themselves_go_round_it_is_said_and_the_workloads_are_named(cluster: Cluster) -> None:
    world = cluster.world()
    for number in range(len(cluster.jobs)):
        world.apply(cluster.job(number))
        settlement = settle(world, NOW, max_cycles=2000)
        assert settlement.settled != bool(settlement.loop)
        if settlement.loop:
            return


@EXAMPLES
@given(CLUSTERS)
def test_a_workload_waiting_within_its_quota_is_admitted_in_the_end(cluster: Cluster) -> None:
    """A workload that fits its team's nominal quota alone does not starve behind borrowers."""
    world = cluster.world()
    for number in range(len(cluster.jobs)):
        world.apply(cluster.job(number))
    if not settle(world, NOW).settled:
        return
    for team in _teams(world):
        in_line, inadmissible = world.pending(team)
        for key in [*in_line, *inadmissible]:
            _, cpu, _ = cluster.jobs[int(key[-2:])]
            assert _usage(world, team) + cpu * 1000 > _nominal(world, team)


@EXAMPLES
@given(CLUSTERS, st.permutations(range(4)))
def test_other_names_for_the_queues_change_nothing(cluster: Cluster, order: list[int]) -> None:
    names = {TEAMS[i]: f"renamed-{order[i]}" for i in range(4)}

    def renamed(obj: Object) -> Object:
        if obj["kind"] == "Workload":
            return obj | {"spec": obj["spec"] | {"queueName": names[obj["spec"]["queueName"]]}}
        return obj | {"metadata": {"name": names[obj["metadata"]["name"]]}}

    plain, other = cluster.world(), a_world(*map(renamed, cluster.queues()), fair_sharing=cluster.fair_sharing)
    for number in range(len(cluster.jobs)):
        plain.apply(cluster.job(number))
        other.apply(renamed(cluster.job(number)))
        one, two = plain.cycle(NOW), other.cycle(NOW)
        assert {a.workload for a in one.admitted} == {a.workload for a in two.admitted}
        assert [(p.workload, p.reason) for p in one.preempted] == [(p.workload, p.reason) for p in two.preempted]
        for victim in one.preempted:
            plain.finish_eviction(victim.workload, NOW)
            other.finish_eviction(victim.workload, NOW)
        assert plain.requeue_inadmissible() == other.requeue_inadmissible()


@EXAMPLES
@given(CLUSTERS, st.randoms(use_true_random=False))
def test_the_order_in_which_objects_are_loaded_changes_nothing(cluster: Cluster, random: Any) -> None:
    objects = [*cluster.queues(), *(cluster.job(n) for n in range(len(cluster.jobs)))]
    shuffled = random.sample(objects, len(objects))
    one = a_world(*objects, fair_sharing=cluster.fair_sharing)
    two = a_world(*shuffled, fair_sharing=cluster.fair_sharing)
    first, second = settle(one, NOW, max_cycles=60), settle(two, NOW, max_cycles=60)
    assert [a.workload for a in first.admitted] == [a.workload for a in second.admitted]
    assert [p.message for p in first.preempted] == [p.message for p in second.preempted]
    assert one.signature() == two.signature()


@EXAMPLES
@given(CLUSTERS)
def test_a_copy_decides_as_its_original(cluster: Cluster) -> None:
    world = cluster.world()
    for number in range(len(cluster.jobs)):
        world.apply(cluster.job(number))
        world.cycle(NOW)
    twin = world.copy()
    before = world.signature()
    assert twin.signature() == before
    settled = settle(twin, NOW, max_cycles=60)
    assert world.signature() == before
    assert settle(world, NOW, max_cycles=60) == settled


@EXAMPLES
@given(CLUSTERS)
def test_an_assignment_that_workloads_share_is_what_a_search_for_each_finds(cluster: Cluster) -> None:
    world = cluster.world()
    for number in range(len(cluster.jobs)):
        world.apply(cluster.job(number))
        world.cycle(NOW)
        nominator = world._nominator()
        for queue in world._store.queues.values():
            for record in world._store.records.values():
                head = Head(nominator, queue, record, nominator.candidates, scan=record.scan)
                assert head.assignment() == head.search(record.demand)


@EXAMPLES
@given(CLUSTERS)
def test_a_cycle_leaves_usage_equal_to_what_its_workloads_hold(cluster: Cluster) -> None:
    world = cluster.world()
    for number in range(len(cluster.jobs)):
        world.apply(cluster.job(number))
        world.cycle(NOW)
        rebuilt = world.copy()
        for team in _teams(world):
            assert rebuilt.quota(team) == world.quota(team)
