"""The flavor search: modes, messages, fungibility, scan progress."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskgov.scheduling.assignment import (
    FIT,
    NO_CANDIDATES,
    NO_FIT,
    PREEMPT,
    RECLAIM,
    Assignment,
    Mode,
)
from taskgov.scheduling.grades import is_preferred, tries_next
from taskgov.scheduling.objects import Fungibility
from tests.scheduling.builders import a_flavor, a_group, a_job, a_queue, a_running_job, a_world

if TYPE_CHECKING:
    from taskgov.scheduling import KueueModel

TWO = {"one": {"cpu": "4"}, "two": {"cpu": "8"}}


def _oracle(mode: Mode = PREEMPT, after: int = 0) -> Any:
    return lambda _fr, _amount: (mode, after)


def _flavors(assignment: Assignment) -> list[dict[str, str]]:
    return list(assignment.nomination)


def _two_flavors(**spec: Any) -> KueueModel:
    return a_world(a_flavor("one"), a_flavor("two"), a_queue("q", flavors=TWO, **spec))


def test_the_first_flavor_that_fits_is_taken() -> None:
    assignment = _two_flavors().assign(a_job("j", "q", cpu="3"), "q")
    assert (assignment.mode, _flavors(assignment), assignment.usage) == (FIT, [{"cpu": "one"}], {"one/cpu": 3000})
    assert assignment.message == ""


def test_workloads_of_one_shape_that_fit_alike_share_one_assignment() -> None:
    world = a_world(*(a_queue(name, cohort="pool", cpu="2") for name in "abc"))
    first = world.assign(a_job("i", "a", cpu="2"), "a")
    assert world.assign(a_job("j", "b", cpu="2"), "b") is first
    assert world.assign(a_job("k", "b", cpu="1"), "b") is not first
    world.apply(a_running_job("l", "c", cpu="1"))
    assert world.assign(a_job("m", "c", cpu="2"), "c").borrowing == 1


def test_what_they_share_is_searched_again_when_a_flavor_changes() -> None:
    world = _two_flavors()
    assert _flavors(world.assign(a_job("j", "q", cpu="3"), "q")) == [{"cpu": "one"}]
    world.apply(a_flavor("one", nodeTaints=[{"key": "k", "value": "v", "effect": "NoSchedule"}]))
    assert _flavors(world.assign(a_job("j", "q", cpu="3"), "q")) == [{"cpu": "two"}]


def test_what_exceeds_every_flavor_says_so_for_each_with_its_numbers() -> None:
    assignment = _two_flavors().assign(a_job("j", "q", cpu="9"), "q")
    assert assignment.mode == NO_FIT
    assert assignment.blocker.token == "ExceedsMaxQuota"
    assert assignment.message == (
        "couldn't assign flavors to pod set main: insufficient quota for cpu in flavor one, previously considered "
        "podsets requests (0) + current podset request (9) > maximum capacity (4), insufficient quota for cpu in "
        "flavor two, previously considered podsets requests (0) + current podset request (9) > maximum capacity (8)"
    )


def test_what_is_only_taken_at_the_moment_is_waited_for() -> None:
    world = a_world(a_queue("q", cpu="4"), a_running_job("r", "q", cpu="3"))
    assignment = world.assign(a_job("j", "q", cpu="2"), "q")
    assert assignment.message == (
        "couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor gpu, 1 more needed"
    )
    assert world.assign(a_job("j", "q", cpu="2"), "q", _oracle(NO_CANDIDATES)).mode == NO_CANDIDATES


def test_a_resource_the_queue_does_not_cover_matters_only_when_some_is_asked_for() -> None:
    world = a_world(a_queue("q", cpu="4"))
    asked = world.assign(a_job("j", "q", requests={"cpu": "1", "nvidia.com/gpu": "1"}), "q")
    assert asked.message.endswith("resource nvidia.com/gpu unavailable in ClusterQueue")
    assert asked.blocker.token == "NoMatchingFlavor"
    free = world.assign(a_job("j", "q", requests={"cpu": "1", "nvidia.com/gpu": "0"}), "q")
    assert (free.mode, _flavors(free)) == (FIT, [{"cpu": "gpu"}])


def test_pods_are_counted_where_the_queue_covers_them() -> None:
    world = a_world(a_queue("q", flavors={"gpu": {"cpu": "9", "pods": "3"}}))
    assert world.assign(a_job("j", "q", count=3), "q").usage == {"gpu/cpu": 3000, "gpu/pods": 3}
    assert world.assign(a_job("j", "q", count=4), "q").mode == NO_FIT


def test_all_resources_of_a_group_come_from_one_flavor() -> None:
    flavors = {"one": {"cpu": "9", "memory": "1Gi"}, "two": {"cpu": "1", "memory": "8Gi"}}
    world = a_world(a_flavor("one"), a_flavor("two"), a_queue("q", flavors=flavors))
    assignment = world.assign(a_job("j", "q", requests={"cpu": "1", "memory": "2Gi"}), "q")
    assert _flavors(assignment) == [{"cpu": "two", "memory": "two"}]
    neither = world.assign(a_job("j", "q", requests={"cpu": "2", "memory": "2Gi"}), "q")
    assert neither.mode == NO_FIT


def test_groups_choose_their_flavors_apart() -> None:
    queue = a_queue("q", flavors={"one": {"cpu": "4"}})
    queue["spec"]["resourceGroups"].append(a_group({"two": {"memory": "1Gi"}, "three": {"memory": "4Gi"}}))
    world = a_world(a_flavor("one"), a_flavor("two"), a_flavor("three"), queue)
    assignment = world.assign(a_job("j", "q", requests={"cpu": "1", "memory": "2Gi"}), "q")
    assert _flavors(assignment) == [{"cpu": "one", "memory": "three"}]


def test_after_one_resource_that_does_not_fit_the_others_still_say_why() -> None:
    world = a_world(a_queue("q", flavors={"gpu": {"cpu": "1", "memory": "1Gi"}}))
    message = world.assign(a_job("j", "q", requests={"cpu": "2", "memory": "2Gi"}), "q").message
    assert "insufficient quota for cpu" in message
    assert "(2Gi) > maximum capacity (1Gi)" in message


def test_pod_sets_add_up_and_after_one_that_fails_the_rest_is_not_looked_at() -> None:
    world = a_world(a_queue("q", cpu="5"))
    job = a_job("j", "q", cpu="3")
    (first,) = job["spec"]["podSets"]
    job["spec"]["podSets"] = [first, {**first, "name": "second"}, {**first, "name": "third"}]
    assignment = world.assign(job, "q")
    assert [p.name for p in assignment.pod_sets] == ["main", "second"]
    assert "considered podsets requests (3) + current podset request (3) > maximum capacity (5)" in assignment.message


def test_a_taint_and_a_label_keep_pods_off_a_flavor() -> None:
    world = a_world(
        a_flavor("one", nodeTaints=[{"key": "spot", "value": "true", "effect": "NoSchedule"}]),
        a_flavor("two", nodeLabels={"zone": "a"}),
        a_queue("q", flavors=TWO),
    )
    job = a_job("j", "q")
    job["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"zone": "b"}
    assignment = world.assign(job, "q")
    assert assignment.message.endswith(
        "flavor two doesn't match node affinity, untolerated taint {spot true NoSchedule <nil>} in flavor one"
    )
    assert assignment.blocker.token == "NoMatchingFlavor"


@pytest.mark.parametrize(
    ("fungibility", "flavor"),
    [
        ({}, "one"),
        ({"whenCanBorrow": "TryNextFlavor"}, "two"),
    ],
    ids=["borrowing may stop the search", "borrowing is put off"],
)
def test_when_can_borrow_decides_between_borrowing_here_and_fitting_there(
    fungibility: dict[str, str],
    flavor: str,
) -> None:
    world = a_world(
        a_flavor("one"),
        a_flavor("two"),
        a_queue("q", cohort="pool", flavors=TWO, flavorFungibility=fungibility),
        a_queue("lender", cohort="pool", flavors=TWO),
    )
    assignment = world.assign(a_job("j", "q", cpu="6"), "q")
    assert (_flavors(assignment), assignment.borrowing) == ([{"cpu": flavor}], 1 if flavor == "one" else 0)


@pytest.mark.parametrize(
    ("fungibility", "flavor"),
    [
        ({}, "two"),
        ({"whenCanPreempt": "MayStopSearch"}, "one"),
    ],
    ids=["preemption is put off", "preemption may stop the search"],
)
def test_when_can_preempt_decides_between_preempting_here_and_fitting_there(
    fungibility: dict[str, str],
    flavor: str,
) -> None:
    world = a_world(
        a_flavor("one"),
        a_flavor("two"),
        a_queue("q", flavors=TWO, flavorFungibility=fungibility),
        a_running_job("r", "q", cpu="4", flavor="one"),
    )
    assignment = world.assign(a_job("j", "q", cpu="2"), "q", _oracle())
    assert _flavors(assignment) == [{"cpu": flavor}]
    tried = assignment.pod_sets[0].choices["cpu"].tried
    assert tried == (0 if flavor == "one" else -1)


def test_preference_decides_what_is_better_of_borrowing_and_preempting() -> None:
    over_preempting, over_borrowing = Fungibility(), Fungibility(preference="PreemptionOverBorrowing")
    assert is_preferred((FIT, 1), (PREEMPT, 0), over_preempting)
    assert is_preferred((PREEMPT, 0), (FIT, 1), over_borrowing)
    assert is_preferred((RECLAIM, 0), (PREEMPT, 0), over_preempting)
    for either in (over_preempting, over_borrowing):
        assert is_preferred((FIT, 2), (NO_CANDIDATES, 0), either)
        assert not is_preferred((NO_FIT, 0), (NO_FIT, 1), either)
        assert not is_preferred((FIT, 0), (FIT, 0), either)


def test_a_flavor_without_candidates_never_stops_the_search() -> None:
    stop = Fungibility("MayStopSearch", "MayStopSearch")
    assert tries_next((NO_CANDIDATES, 0), stop)
    assert not tries_next((PREEMPT, 0), stop)
    assert not tries_next((FIT, 3), stop)


def test_pod_sets_of_one_group_get_one_flavor_for_all() -> None:
    world = _two_flavors()
    job = a_job("j", "q", cpu="2", topologyRequest={"podSetGroupName": "g"})
    (leader,) = job["spec"]["podSets"]
    job["spec"]["podSets"] = [leader, {**leader, "name": "worker", "count": 2}]
    assert _flavors(world.assign(job, "q")) == [{"cpu": "two"}, {"cpu": "two"}]


def test_a_flavor_that_does_not_exist_is_named() -> None:
    world = a_world(a_queue("q", flavors={"ghost": {"cpu": "1"}}))
    assert world.assign(a_job("j", "q"), "q").message.endswith("flavor ghost not found")
