"""What one cycle decides, and what the next one finds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling import Requeue, candidates, cycle
from tests.scheduling.builders import (
    HYPERPOD_PREEMPTION,
    NOW,
    Object,
    a_cohort,
    a_flavor,
    a_job,
    a_queue,
    a_running_job,
    a_world,
    conditions,
    names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

    from taskgov.scheduling.candidates import Victim

RECOMPUTE = {"RecomputeAssignmentUponPreemptionTargetsOverlap": True}


def test_a_cycle_looks_at_one_head_of_each_queue() -> None:
    world = a_world(
        a_queue("a", cpu="9"),
        a_queue("b", cpu="9"),
        *(a_job(f"a{i}", "a", second=i) for i in range(3)),
        a_job("b0", "b"),
    )
    assert names(world.cycle(NOW))[0] == ["a0", "b0"]
    assert world.pending("a") == (["default/a1", "default/a2"], [])


def test_several_heads_of_a_cohort_are_admitted_while_they_fit_together() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="3"),
        a_queue("b", cohort="pool", cpu="3"),
        a_job("one", "a", cpu="4"),
        a_job("two", "b", cpu="4", second=1),
    )
    result = world.cycle(NOW)
    assert names(result) == (["one"], [], ["two"])
    assert result.waiting[0].message == "Workload no longer fits after processing another workload"
    assert (result.waiting[0].requeue, result.waiting[0].in_line) == (Requeue.FAILED_AFTER_NOMINATION, True)
    assert result.waiting[0].mode == "Fit"


def test_victims_of_a_cycle_are_taken_out_and_put_back_once_in_a_cohort_of_queues(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put_back: list[str] = []

    def counting(victims: Iterable[Victim]) -> None:
        victims = list(victims)
        put_back.extend(victim.record.key for victim in victims)
        candidates.put_back(victims)

    def of(number: int) -> list[Object]:
        flavor, lender, guest = f"f{number}", f"lender{number}", f"guest{number}"
        return [
            a_flavor(flavor),
            a_queue(lender, cohort="pool", flavors={flavor: {"cpu": "1"}}, preemption=HYPERPOD_PREEMPTION),
            a_queue(guest, cohort="pool", flavors={flavor: {"cpu": "0"}}),
            a_running_job(f"runs{number}", guest, flavor=flavor),
            a_job(f"waits{number}", lender, second=number),
        ]

    world = a_world(*(item for number in range(4) for item in of(number)), fair_sharing=True)
    monkeypatch.setattr(cycle, "put_back", counting)
    _, preempted, _ = names(world.cycle(NOW))
    assert sorted(preempted) == ["runs0", "runs1", "runs2", "runs3"]
    assert len(put_back) == 2 * len(preempted)  # to see whether its preemptor would fit, and when the cycle ends


def test_victims_of_a_cycle_still_count_for_the_order_of_those_in_their_cohort() -> None:
    one, none = {"cpu": "1"}, {"cpu": "0"}
    world = a_world(
        *(a_flavor("f1"), a_flavor("f2"), a_flavor("f3"), a_cohort("below", parent="root")),
        a_queue("lender", cohort="below", flavors={"f1": one}, preemption=HYPERPOD_PREEMPTION),
        a_queue("spare", cohort="below", flavors={"f2": one}),
        a_queue("own", cohort="below", flavors={"f3": one}),
        a_queue("small", cohort="below", flavors={"f2": none}),
        a_queue("large", cohort="below", flavors={"f2": none, "f1": none}),
        *(a_running_job("victim", "large", flavor="f1"), a_job("reclaims", "lender"), a_job("fits", "own", second=3)),
        *(a_job("earlier", "large", second=1), a_job("later", "small", second=2)),
        fair_sharing=True,
    )
    assert names(world.cycle(NOW))[:2] == (["fits", "later"], ["victim"])  # large borrows until its workload has left


def test_a_preemptor_is_admitted_only_after_its_victims_have_left() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="0"),
        a_running_job("guest", "b", cpu="4"),
        a_job("owner", "a", cpu="4"),
    )
    first = world.cycle(NOW)
    assert names(first) == ([], ["guest"], ["owner"])
    assert first.waiting[0].message.endswith("4 more needed. Pending the preemption of 1 workload(s)")
    assert world.quota("b").usage["gpu/cpu"] == 4_000
    second = world.cycle(NOW)
    assert names(second) == ([], [], ["owner"])
    assert second.waiting[0].message.endswith("Pending the preemption of 1 workload(s)")
    world.finish_eviction("default/guest", NOW)
    assert names(world.cycle(NOW))[0] == ["owner"]
    assert world.pending("b") == (["default/guest"], [])


def test_while_victims_leave_their_space_is_held_for_the_preemptor() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="0"),
        a_queue("c", cohort="pool", cpu="0"),
        a_running_job("guest", "b", cpu="3"),
        a_job("owner", "a", cpu="4", priority=1),
        a_job("opportunist", "c", cpu="1"),
    )
    result = world.cycle(NOW)
    assert names(result) == ([], ["guest"], ["owner", "opportunist"])
    assert result.waiting[1].message == "Workload no longer fits after processing another workload"


def test_two_preemptors_do_not_share_a_victim() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("c", cohort="pool", cpu="0"),
        a_running_job("guest", "c", cpu="4"),
        a_job("one", "a", cpu="2"),
        a_job("two", "b", cpu="2", second=1),
    )
    result = world.cycle(NOW)
    assert names(result) == ([], ["guest"], ["one", "two"])
    assert result.waiting[1].message == "Workload has overlapping preemption targets with another workload"
    assert result.skipped_preemptions == {"b": 1}


def test_with_recomputing_the_second_one_waits_for_the_same_victim_without_claiming_it() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("c", cohort="pool", cpu="0"),
        a_running_job("guest", "c", cpu="4"),
        a_job("one", "a", cpu="2"),
        a_job("two", "b", cpu="2", second=1),
        gates=RECOMPUTE,
    )
    result = world.cycle(NOW)
    assert names(result) == ([], ["guest"], ["one", "two"])
    assert result.waiting[1].message.endswith("but will fit after these preemptions complete")
    world.finish_eviction("default/guest", NOW)
    assert names(world.cycle(NOW))[0] == ["one", "two"]


def test_with_recomputing_the_second_one_finds_other_victims() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("c", cohort="pool", cpu="0"),
        a_running_job("g1", "c", cpu="2"),
        a_running_job("g2", "c", cpu="2"),
        a_job("one", "a", cpu="2"),
        a_job("two", "b", cpu="2", second=1),
        gates=RECOMPUTE,
    )
    assert names(world.cycle(NOW)) == ([], ["g1", "g2"], ["one", "two"])


def test_who_cannot_preempt_keeps_room_for_itself_unless_its_queue_can_always_reclaim() -> None:
    for reclaim, second in (("LowerPriority", []), ("Any", ["small"])):
        world = a_world(
            a_queue("a", cohort="pool", cpu="4", preemption={"reclaimWithinCohort": reclaim}),
            a_queue("b", cohort="pool", cpu="0"),
            a_running_job("mine", "a", cpu="1"),
            a_job("big", "a", cpu="4", priority=9),
            a_job("small", "b", cpu="3"),
        )
        assert names(world.cycle(NOW))[0] == second


def test_what_was_held_during_a_cycle_is_free_again_after_it() -> None:
    world = a_world(
        a_queue("a", cohort="pool", cpu=("4", "0", None), preemption={"reclaimWithinCohort": "LowerPriority"}),
        a_queue("b", cohort="pool", cpu="0", preemption=HYPERPOD_PREEMPTION),
        a_running_job("mine", "a", cpu="5"),
        a_job("big", "a", cpu="4", priority=9),
        a_job("lend", "b", cpu="1"),
    )
    before = world.quota("a").usage, world.quota("pool", cohort=True).usage
    world.cycle(NOW)
    assert (world.quota("a").usage, world.quota("pool", cohort=True).usage) == before


def test_a_strict_queue_blocks_behind_its_head_and_a_best_effort_queue_does_not() -> None:
    for strategy, later in (("StrictFIFO", False), ("BestEffortFIFO", True)):
        world = a_world(
            a_queue("q", cpu="2", queueingStrategy=strategy),
            a_running_job("r", "q", cpu="1"),
            a_job("big", "q", cpu="2", second=0),
            a_job("small", "q", cpu="1", second=1),
        )
        world.cycle(NOW)
        assert (names(world.cycle(NOW))[0] == ["small"]) is later


def test_a_namespace_that_is_not_selected_is_said_to_be_so() -> None:
    selector = {"matchLabels": {"team": "nlp"}}
    world = a_world(a_queue("q", cpu="2", namespaceSelector=selector), a_job("j", "q"))
    result = world.cycle(NOW)
    assert result.waiting[0].message == "workload namespace doesn't match ClusterQueue selector"
    assert result.waiting[0].requeue is Requeue.NAMESPACE_MISMATCH
    world.apply({"kind": "Namespace", "metadata": {"name": "default", "labels": {"team": "nlp"}}})
    assert world.requeue_inadmissible() == 1
    assert names(world.cycle(NOW))[0] == ["j"]


def test_a_workload_may_start_smaller_where_it_says_so() -> None:
    world = a_world(a_queue("q", cpu="5"), a_job("j", "q", count=8, minCount=2))
    world.cycle(NOW)
    admission = world.admission("default/j")
    assert admission is not None
    assert [(p.count, p.usage) for p in admission.pod_sets] == [(5, {"cpu": 5_000})]
    off = a_world(a_queue("q", cpu="5"), a_job("j", "q", count=8, minCount=2), gates={"PartialAdmission": False})
    assert names(off.cycle(NOW))[0] == []


def test_a_search_that_stopped_early_continues_with_the_next_flavor() -> None:
    flavors = {"one": {"cpu": "2"}, "gpu": {"cpu": "2"}}
    rules = {"preemption": HYPERPOD_PREEMPTION, "flavorFungibility": {"whenCanPreempt": "MayStopSearch"}}
    world = a_world(
        {"kind": "ResourceFlavor", "metadata": {"name": "one"}},
        a_queue("a", cohort="pool", flavors=flavors, **rules),
        a_queue("b", cohort="pool", flavors=flavors, **rules),
        a_queue("c", cohort="pool", flavors={"one": {"cpu": "0"}}),
        a_running_job("guest", "c", cpu="4", flavor="one"),
        a_job("first", "a", cpu="2"),
        a_job("second", "b", cpu="2", second=1),
    )
    assert names(world.cycle(NOW)) == ([], ["guest"], ["first", "second"])
    assert names(world.cycle(NOW))[0] == ["second"]
    admission = world.admission("default/second")
    assert admission is not None
    assert admission.pod_sets[0].flavors == {"cpu": "gpu"}


def test_reasons_are_granular_only_with_observability() -> None:
    objects = [a_queue("q", cpu="2"), a_job("j", "q", cpu="3")]
    plain, granular = a_world(*objects), a_world(*objects, gates={"UnadmittedWorkloadsObservability": True})
    plain.cycle(NOW)
    granular.cycle(NOW)
    assert conditions(plain, "j")["QuotaReserved"]["reason"] == "Pending"
    assert conditions(granular, "j")["QuotaReserved"]["reason"] == "ExceedsMaxQuota"
