"""Totals, order and equivalence of what workloads ask for."""

from __future__ import annotations

from taskgov.quantities import UNLIMITED
from taskgov.scheduling.demand import demand_of, fnv1a, resized, total
from taskgov.scheduling.objects import PodSet


def test_equal_shapes_share_one_demand() -> None:
    one = (PodSet("main", 2, (("cpu", 1000),)),)
    other = (PodSet("main", 2, (("cpu", 1000),)),)
    assert demand_of(one, ()) is demand_of(other, ())
    assert demand_of(one, ()) is not demand_of(one, (("main", 1),))


def test_requests_are_per_pod_times_count_in_the_order_of_hashed_names() -> None:
    demand = demand_of((PodSet("main", 3, (("cpu", 500), ("memory", 10), ("nvidia.com/gpu", 1))),), ())
    (pod_set,) = demand.pod_sets
    assert dict(pod_set.requests) == {"cpu": 1500, "memory": 30, "nvidia.com/gpu": 3}
    assert list(pod_set.requests) == sorted(pod_set.requests, key=fnv1a)
    assert pod_set.with_pods["pods"] == 3


def test_reclaimable_pods_are_not_asked_for_again() -> None:
    demand = demand_of((PodSet("main", 3, (("cpu", 500),)),), (("main", 2),))
    assert (demand.pod_sets[0].count, dict(demand.pod_sets[0].requests)) == (1, {"cpu": 500})


def test_pod_sets_of_a_group_are_summed_and_sums_saturate() -> None:
    pod_sets = (
        PodSet("leader", 1, (("cpu", UNLIMITED - 1),), group="g"),
        PodSet("other", 1, (("cpu", 1),)),
        PodSet("worker", 4, (("cpu", 1000),), group="g"),
    )
    demand = resized(pod_sets, [1, 1, 4])
    assert demand.groups == ((0, 2), (1,))
    assert total([demand.pod_sets[0].requests, demand.pod_sets[2].requests]) == {"cpu": UNLIMITED}


def test_only_a_minimum_below_the_count_lets_a_demand_shrink() -> None:
    assert demand_of((PodSet("main", 3, (), min_count=1),), ()).can_shrink
    assert not demand_of((PodSet("main", 3, (), min_count=3),), ()).can_shrink
