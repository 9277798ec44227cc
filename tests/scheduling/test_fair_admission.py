"""LocalQueues that take turns: KEP-4136, after `pkg/scheduler/scheduler_afs_test.go` and the tests named below."""

from __future__ import annotations

import math
from typing import Any

import pytest

from taskgov.scheduling import AdmissionFairSharing, KueueModel, ManagerConfig, settle
from taskgov.scheduling.fair_admission import BILLION, Account, Ledger
from taskgov.scheduling.instants import SECOND, instant
from tests.scheduling.builders import (
    NOW,
    Object,
    a_door,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    names,
)

TURNS: dict[str, Any] = {"admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"}}
MINUTE, HOUR = 60, 3600
KEY = ("default", "lq-a")


def at(seconds: float) -> int:
    """A moment after NOW."""
    return instant(NOW) + int(seconds * SECOND)


def a_local_queue(
    name: str, weight: str = "1", consumed: dict[str, str] | None = None, queue: str = "q", namespace: str = "default"
) -> Object:
    door = a_door(queue, namespace)
    door["metadata"]["name"] = name
    door["spec"]["fairSharing"] = {"weight": weight}
    if consumed is not None:
        status = {"consumedResources": consumed, "lastUpdate": NOW}
        door["status"] = {"fairSharing": {"admissionFairSharingStatus": status}}
    return door


def a_world_of_turns(
    *objects: Object, gates: dict[str, bool] | None = None, cpu: Any = "8", settings: Any = None, **spec: Any
) -> KueueModel:
    settings = settings or AdmissionFairSharing(usage_half_life_time=10, usage_sampling_interval=1)
    world = KueueModel(ManagerConfig(gates=gates or {}, admission_fair_sharing=settings))
    world.load([a_flavor(), a_queue("q", cpu=cpu, **(TURNS | spec)), *objects])
    return world


def first(world: KueueModel) -> str:
    [name, *_] = names(world.cycle(NOW))[0]
    return name


class TestOrder:
    """`queueOrderingFunc` in `pkg/cache/queue/cluster_queue.go`, and the cases of `TestScheduleForAFS`."""

    def jobs(self) -> list[Object]:
        return [a_job("wl-a", "lq-a", cpu="8"), a_job("wl-b", "lq-b", cpu="8", second=1)]

    def test_admits_workload_from_less_active_localqueue(self) -> None:
        doors = a_local_queue("lq-a", consumed={"cpu": "8"}), a_local_queue("lq-b", consumed={"cpu": "2"})
        world = a_world_of_turns(*doors, *self.jobs())
        assert first(world) == "wl-b"
        assert names(world.cycle(NOW)) == ([], [], ["wl-a"])

    def test_admits_workload_from_lq_b_with_uninitialized_cache(self) -> None:
        world = a_world_of_turns(a_local_queue("lq-a", consumed={"cpu": "8"}), a_local_queue("lq-b"), *self.jobs())
        assert first(world) == "wl-b"

    def test_does_not_prioritize_a_zero_weight_localqueue(self) -> None:
        assert first(a_world_of_turns(a_local_queue("lq-a", "0"), a_local_queue("lq-b"), *self.jobs())) == "wl-b"

    def test_schedules_normally_when_queues_have_equal_usage(self) -> None:
        doors = a_local_queue("lq-a", consumed={"cpu": "4"}), a_local_queue("lq-b", consumed={"cpu": "4"})
        assert first(a_world_of_turns(*doors, *self.jobs())) == "wl-a"

    @pytest.mark.parametrize("without", ["the gate", "the setting", "the scope"])
    def test_without_afs_classic_admission_decision_ignores_queue_usage(self, without: str) -> None:
        doors = a_local_queue("lq-a", consumed={"cpu": "8"}), a_local_queue("lq-b", consumed={"cpu": "2"})
        scope = {"admissionMode": "NoAdmissionFairSharing"} if without == "the scope" else TURNS["admissionScope"]
        gates = {"AdmissionFairSharing": without != "the gate"}
        world = a_world_of_turns(*doors, *self.jobs(), gates=gates, admissionScope=scope)
        if without == "the setting":
            world = world.restarted(ManagerConfig())
        assert first(world) == "wl-a"

    def test_admits_one_workload_from_each_localqueue_when_quota_is_limited(self) -> None:
        """Each admission charges its LocalQueue at once, so that the next turn is another's."""
        doors = [a_local_queue(name) for name in ("lq-a", "lq-b", "lq-c")]
        jobs = [a_job(f"a{n}", "lq-a", cpu="2", second=n) for n in range(3)]
        jobs += [a_job("b", "lq-b", cpu="2", second=5), a_job("c", "lq-c", cpu="2", second=6)]
        fixed_point = settle(a_world_of_turns(*doors, *jobs, cpu="6"), NOW)
        assert [a.workload for a in fixed_point.admitted] == ["default/a0", "default/b", "default/c"]

    def test_usage_comes_before_priority_and_the_weight_divides_it(self) -> None:
        doors = a_local_queue("lq-a", "4", consumed={"cpu": "8"}), a_local_queue("lq-b", "1", consumed={"cpu": "3"})
        jobs = a_job("wl-a", "lq-a", cpu="8"), a_job("wl-b", "lq-b", cpu="8", priority=9)
        assert first(a_world_of_turns(*doors, *jobs)) == "wl-a"

    def test_resources_weigh_as_they_are_configured(self) -> None:
        doors = (
            a_local_queue("lq-a", consumed={"cpu": "1", "memory": "8"}),
            a_local_queue("lq-b", consumed={"cpu": "2"}),
        )
        settings = AdmissionFairSharing(10, 1, {"memory": 0.0})
        assert first(a_world_of_turns(*doors, *self.jobs()[::-1], settings=settings)) == "wl-a"

    def test_local_queues_of_one_name_in_two_namespaces_take_turns_too(self) -> None:
        doors = a_local_queue("lq-a", consumed={"cpu": "8"}), a_local_queue("lq-a", namespace="other")
        jobs = a_job("wl-a", "lq-a", cpu="8"), a_job("wl-b", "lq-a", cpu="8", second=1, namespace="other")
        [admitted] = a_world_of_turns(*doors, *jobs).cycle(NOW).admitted
        assert admitted.workload == "other/wl-b"

    def test_a_preemptor_is_sticky_only_within_its_turn(self) -> None:
        takes = {"withinClusterQueue": "LowerPriority"}
        doors = a_local_queue("lq-a", consumed={"cpu": "1"}), a_local_queue("lq-b", consumed={"cpu": "2"})
        running = a_running_job("runs", "q", cpu="8")
        world = a_world_of_turns(
            *doors, a_door("q"), running, a_job("wl-b", "lq-b", cpu="8", priority=1), preemption=takes
        )
        assert names(world.cycle(NOW))[1] == ["runs"]
        world.delete("Workload", "runs", "default")
        world.apply(a_job("wl-a", "lq-a", cpu="8"))
        assert first(world.copy()) == "wl-a"
        world.delete("Workload", "wl-a", "default")
        world.apply(a_job("urgent", "lq-b", cpu="8", priority=9))
        assert first(world) == "wl-b"

    def test_a_change_of_the_scope_orders_only_after_a_restart(self) -> None:
        """The order is chosen when the queue is made (`newClusterQueueImpl`)."""
        doors = a_local_queue("lq-a", consumed={"cpu": "8"}), a_local_queue("lq-b", consumed={"cpu": "2"})
        world = a_world_of_turns(*doors, *self.jobs(), admissionScope=None)
        world.apply(a_queue("q", cpu="8", **TURNS))
        assert first(world.copy()) == "wl-a"
        assert first(world.restarted(world.config)) == "wl-b"

    def test_a_copy_takes_turns_by_its_own_accounts(self) -> None:
        doors = a_local_queue("lq-a"), a_local_queue("lq-b")
        jobs = a_job("a0", "lq-a"), a_job("a1", "lq-a", second=1), a_job("b0", "lq-b", second=2)
        world = a_world_of_turns(*doors, *jobs)
        twin = world.copy()
        assert (first(world), first(world)) == ("a0", "b0")
        assert first(twin) == "a0"
        assert twin.signature() != world.signature()

    def test_inadmissible_equals_of_all_local_queues_wait_together(self) -> None:
        doors = a_local_queue("lq-a"), a_local_queue("lq-b")
        jobs = a_job("a0", "lq-a", cpu="9"), a_job("b0", "lq-b", cpu="9", second=1), a_job("b1", "lq-b", second=2)
        world = a_world_of_turns(*doors, *jobs)
        world.cycle(NOW)
        assert world.pending("q") == (["default/b1"], ["default/a0", "default/b0"])
        world.requeue_inadmissible(world.trees)
        assert len(world.pending("q")[0]) == 3


class TestPreemption:
    """`CandidatesOrdering` in `pkg/scheduler/preemption/common/ordering.go`: more usage first, then priority."""

    def world(self, **world: Any) -> KueueModel:
        doors = a_local_queue("lq-a", consumed={"cpu": "8"}), a_local_queue("lq-b", consumed={"cpu": "2"})
        running = [
            a_running_job("greedy", "lq-a", cpu="4", priority=2),
            a_running_job("modest", "lq-b", cpu="4", priority=1),
        ]
        for workload in running:
            workload["status"]["admission"]["clusterQueue"] = "q"
        urgent = a_job("urgent", "lq-b", cpu="4", priority=9)
        takes = {"withinClusterQueue": "LowerPriority"}
        return a_world_of_turns(*doors, *running, urgent, preemption=takes, **world)

    def test_who_used_more_is_preempted_first_whatever_its_priority(self) -> None:
        assert self.world().candidates("q") == ["default/greedy", "default/modest"]
        assert names(self.world().cycle(NOW))[1] == ["greedy"]

    def test_without_the_gate_priority_decides(self) -> None:
        assert names(self.world(gates={"AdmissionFairSharing": False}).cycle(NOW))[1] == ["modest"]

    def test_reclaiming_from_another_queue_too(self) -> None:
        world = self.world(cohort="all", cpu="4")
        world.apply(a_queue("owner", cohort="all", cpu="4", preemption={"reclaimWithinCohort": "Any"}))
        world.apply(a_door("owner"))
        world.apply(a_job("back", "owner", cpu="4"))
        assert "greedy" in names(world.cycle(NOW))[1]


def a_ledger(half_life: float, interval: float = 5 * MINUTE, **weights: float) -> Ledger:
    return Ledger(AdmissionFairSharing(half_life, interval, weights))


class TestAccounts:
    """The cases of `TestLocalQueueReconcile` ("local queue decaying usage ..."), in billionths."""

    @pytest.mark.parametrize(
        ("half_life", "used", "left"),
        [
            (5 * MINUTE, 4 * BILLION, 6 * BILLION),
            (10 * MINUTE, 4 * BILLION, 6_828_427_124),
            (24 * HOUR, 0, 7_980_769_063),
        ],
    )
    def test_consumption_decays_and_follows_what_is_held(self, half_life: float, used: int, left: int) -> None:
        ledger = a_ledger(half_life)
        ledger.accounts[KEY] = Account({"cpu": 8 * BILLION}, at(0))
        ledger.sample(KEY, {"cpu": used} if used else {}, at(5 * MINUTE))
        assert (ledger.accounts[KEY].consumed, ledger.accounts[KEY].updated) == ({"cpu": left}, at(5 * MINUTE))

    def test_without_a_half_life_everything_is_forgotten(self) -> None:
        ledger = a_ledger(0)
        ledger.accounts[KEY] = Account({"GPU": 8 * BILLION}, at(0))
        ledger.sample(KEY, {"GPU": 4 * BILLION}, at(5 * MINUTE))
        assert ledger.accounts[KEY].consumed == {}

    def test_nothing_is_sampled_before_its_time_and_a_new_account_begins_empty(self) -> None:
        ledger = a_ledger(5 * MINUTE)
        ledger.accounts[KEY] = Account({"cpu": 8 * BILLION}, at(0))
        ledger.sample(KEY, {"cpu": BILLION}, at(4 * MINUTE))
        assert ledger.accounts[KEY].consumed == {"cpu": 8 * BILLION}
        ledger.sample(("default", "new"), {"cpu": BILLION}, at(0))
        assert ledger.accounts["default", "new"] == Account({}, at(0))

    def test_a_long_time_comes_to_the_same_in_many_samplings_and_in_one(self) -> None:
        """`TestCalculateDecayedConsumedConvergesToUsage`: half of the way after one half-life of 168 hours."""
        ledger = a_ledger(168 * HOUR)
        ledger.sample(KEY, {}, at(0))
        for step in range(1, 2017):
            ledger.sample(KEY, {"cpu": 2 * BILLION}, at(step * 5 * MINUTE))
        assert abs(ledger.accounts[KEY].consumed["cpu"] - BILLION) < BILLION // 1000
        at_once = a_ledger(168 * HOUR)
        at_once.sample(KEY, {}, at(0))
        at_once.sample(KEY, {"cpu": 2 * BILLION}, at(168 * HOUR))
        assert abs(at_once.accounts[KEY].consumed["cpu"] - BILLION) < 10

    def test_an_entry_penalty_is_a_sampling_interval_of_what_is_asked_for(self) -> None:
        """`CalculateEntryPenalty`, and `updateAfsConsumedUsage`, which settles it once."""
        ledger = a_ledger(5 * MINUTE)
        ledger.charge(KEY, "default/job", {"cpu": 4000, "nvidia.com/gpu": 2})
        assert ledger.accounts[KEY].penalties == {"default/job": {"cpu": 2 * BILLION, "nvidia.com/gpu": BILLION}}
        assert ledger.usage(KEY, 1) == 3
        ledger.settle(KEY, "default/job", {"cpu": 4 * BILLION}, at(0))
        ledger.settle(KEY, "default/job", {"cpu": 4 * BILLION}, at(0))
        assert ledger.accounts[KEY].consumed == {"cpu": 2 * BILLION, "nvidia.com/gpu": BILLION}
        assert ledger.accounts[KEY].penalties == {}
        ledger.charge(KEY, "default/other", {"cpu": 4000})
        ledger.release(KEY, "default/other")
        assert ledger.usage(KEY, 1) == 3

    @pytest.mark.parametrize(
        ("consumed", "weight", "weights", "usage"),
        [
            ({"gpu": 2}, 1, {}, 2),
            ({"gpu": 2}, 1, {"gpu": 3.0}, 6),
            ({"cpu": 4, "gpu": 2}, 1, {"cpu": 1.0, "gpu": 5.0}, 14),
            ({"gpu": 10}, 1, {"gpu": 0.0}, 0),
            ({"gpu": 3}, 2, {"gpu": 4.0}, 6),
            ({"gpu": 3}, 0, {}, math.inf),
            ({}, -1, {}, math.inf),
        ],
    )
    def test_usage(self, consumed: dict[str, int], weight: float, weights: dict[str, float], usage: float) -> None:
        """The cases of `TestCalculateUsageWithDRA` and `TestCalculateUsageWithNonPositiveWeight`."""
        ledger = a_ledger(5 * MINUTE, **weights)
        ledger.accounts[KEY] = Account({name: amount * BILLION for name, amount in consumed.items()})
        assert ledger.usage(KEY, weight) == pytest.approx(usage)


class TestOverTime:
    """`Reconcile` in `pkg/controller/core/localqueue_controller.go`: what admitted workloads hold is sampled."""

    def world(self) -> KueueModel:
        settings = AdmissionFairSharing(5 * MINUTE, 5 * MINUTE)
        world = a_world_of_turns(
            a_local_queue("lq-a"), a_local_queue("lq-b"), a_job("job", "lq-a", cpu="4"), settings=settings
        )
        world.cycle(NOW)
        return world

    def consumed(self, world: KueueModel) -> Any:
        return world.local_queue("default", "lq-a")["status"]["fairSharing"]["admissionFairSharingStatus"]

    def test_an_admission_is_charged_at_once_and_what_it_holds_from_then_on(self) -> None:
        world = self.world()
        assert self.consumed(world) == {"consumedResources": {"cpu": "2"}, "lastUpdate": NOW}
        world.cycle(at(5 * MINUTE))
        assert self.consumed(world) == {"consumedResources": {"cpu": "3"}, "lastUpdate": "2026-11-20T09:05:00Z"}

    def test_what_ended_is_counted_to_its_end_and_decays_then(self) -> None:
        world = self.world()
        world.finish("default/job", at(5 * MINUTE))
        assert self.consumed(world)["consumedResources"] == {"cpu": "3"}
        world.cycle(at(10 * MINUTE))
        assert self.consumed(world)["consumedResources"] == {"cpu": "1500m"}

    def test_a_restart_keeps_the_accounts_and_a_deleted_local_queue_loses_its(self) -> None:
        world = self.world()
        again = world.restarted(world.config)
        assert self.consumed(again)["consumedResources"] == {"cpu": "2"}
        again.delete("LocalQueue", "lq-a", "default")
        again.apply(a_local_queue("lq-a"))
        assert "fairSharing" not in again.local_queue("default", "lq-a")["status"]

    def test_a_stopped_local_queue_is_not_sampled(self) -> None:
        world = self.world()
        door = a_local_queue("lq-a")
        door["spec"]["stopPolicy"] = "Hold"
        world.apply(door)
        world.cycle(at(5 * MINUTE))
        assert self.consumed(world)["lastUpdate"] == NOW

    def test_a_changed_weight_leaves_everybody_where_they_wait(self) -> None:
        world = a_world_of_turns(a_local_queue("lq-a"), a_job("job", "lq-a", cpu="9"))
        world.cycle(NOW)
        world.apply(a_local_queue("lq-a", "2"))
        assert world.pending("q") == ([], ["default/job"])
