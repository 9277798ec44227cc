"""The search for a path: who is raised first, in which groups, and what is not lost on the way."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from taskgov.allocation import path
from taskgov.allocation.plan import Change, ChangeKind, Outcome
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.predict import LoopError, Player, Stage
from taskgov.hyperpod.model import ComputeQuota
from taskgov.snapshot.model import Snapshot
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import applied, document, fixed, nodes, quota, row, snapshot

BORROWS = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100}}


def returned(pairs: int, extra: int, *, bees_wait: bool) -> Snapshot:
    """Half of the nodes failed and are back: bees run more than their quotas, ants wait, and nobody needs to go."""
    ants, bees = [f"ant{n}" for n in range(pairs)], [f"bee{n}" for n in range(pairs)]

    def quotas(ant: int, bee: int) -> list[ComputeQuota]:
        return [quota(team, row(Count=ant), settings=BORROWS) for team in ants] + [
            quota(team, row(Count=bee), settings=BORROWS) for team in bees
        ]

    now = quotas(1, 2)
    work = queues(quotas(2, 4), *(job(team, f"{team}-runs", 4, minute=1) for team in bees))
    specs = {each["metadata"]["name"]: each["spec"] for each in queues(now).cluster_queues}
    lowered = tuple({**each, "spec": specs[each["metadata"]["name"]]} for each in work.cluster_queues)
    waiting = [job(team, f"{team}-waits", 2, minute=5) for team in ants]
    waiting += [job(team, f"{team}-big", 40, minute=6) for team in bees if bees_wait]
    waiting += [job(team, f"{team}-{n}", 50 + n, minute=7) for team in (*ants, *bees) for n in range(extra)]
    policy = document(
        *(fixed(team, row(Count=2), **BORROWS) for team in ants),
        *(fixed(team, row(Count=4), **BORROWS) for team in bees),
        pool=False,
        guardrails={"maxPreemptedGpus": 0},
    )
    kueue = replace(work, cluster_queues=lowered, workloads=(*work.workloads, *waiting))
    return snapshot(policy, nodes(6 * pairs), now, kueue=kueue, scheduler_config=SCHEDULER)


def test_who_borrows_and_also_waits_is_raised_before_who_only_waits() -> None:
    assert plan_quotas(returned(4, 0, bees_wait=True), mode="apply").outcome is Outcome.APPLY


@pytest.mark.long
def test_waiting_work_that_fits_nowhere_does_not_end_the_search() -> None:
    assert plan_quotas(returned(3, 60, bees_wait=False), mode="apply").outcome is Outcome.APPLY


TYPES = {"v": "ml.g6.12xlarge", "x": "ml.g5.16xlarge", "g": "ml.g5.8xlarge", "p": "ml.p4d.24xlarge"} | {
    "z": "ml.g5.12xlarge", "w": "ml.g5.48xlarge", "h": "ml.g6.48xlarge", "k": "ml.p5.48xlarge", "l": "ml.g6.24xlarge"
}  # fmt: skip


def test_second_writes_do_not_take_the_room_of_what_is_written_once() -> None:
    before = {"c": {"x": 1, "v": 0}, "a": {"p": 2, "x": 0, "g": 0}, "b": {"g": 2, "p": 0, "h": 1}}
    before |= {
        "u": {"k": 1, "l": 0, "h": 0},
        "y": {"l": 1, "k": 0},
        "r": {"w": 1, "z": 0, "g": 0},
        "s": {"z": 1, "w": 0},
    }
    after = {"c": {"x": 0, "v": 1}, "a": {"p": 0, "x": 1, "g": 2}, "b": {"g": 0, "p": 2, "h": 0}}
    after |= {
        "u": {"k": 0, "l": 1, "h": 1},
        "y": {"l": 0, "k": 1},
        "r": {"w": 0, "z": 1, "g": 2},
        "s": {"z": 0, "w": 1},
    }
    there = {"v": 1, "x": 1, "g": 4, "p": 2, "z": 1, "w": 1, "h": 1, "k": 1, "l": 1}

    def rows(counts: dict[str, int]) -> list[dict[str, Any]]:
        return [row(TYPES[name], Count=count) for name, count in counts.items()]

    world = snapshot(
        document(*(fixed(team, *rows(counts)) for team, counts in after.items()), pool=False),
        [node for name, count in there.items() for node in nodes(count, TYPES[name])],
        [quota(team, *rows(counts)) for team, counts in before.items()],
    )
    assert plan_quotas(applied(world, plan_quotas(world, mode="apply")), mode="apply").changes == ()


def test_what_comes_to_rest_elsewhere_and_is_preempted_then_is_predicted() -> None:
    other = "ml.g5.16xlarge"
    lends = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 500}}
    mixed = row(Count=1), row(other, Count=1)
    before = [
        quota("lender", row(other, Count=2), settings=lends),
        quota("owner", row(Count=2), settings=lends),
        quota("taker", row(other, Count=0), settings=lends),
        quota("x", *mixed, settings=lends),
    ]
    policy = document(
        fixed("lender", row(other, Count=0), **lends),
        fixed("owner", row(Count=2), **lends),
        fixed("taker", row(other, Count=2), **lends),
        fixed("x", *mixed, **lends),
        pool=False,
        guardrails={"maxPreemptedGpus": 0},
    )
    work = queues(before, job("x", "x-runs", 3, minute=1))
    taker = job("taker", "taker-waits", 2, minute=3)
    taker["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": other}
    kueue = replace(work, workloads=(*work.workloads, job("owner", "owner-waits", 2, minute=2), taker))
    world = snapshot(policy, [*nodes(3), *nodes(3, other)], before, kueue=kueue, scheduler_config=SCHEDULER)
    plan = plan_quotas(world, mode="apply")
    assert ("x-runs", "preempted") in [(each.name, each.effect) for each in plan.prediction.effects]
    assert plan.outcome is Outcome.BLOCKED


def test_an_order_that_preempts_nobody_is_found_where_writing_at_once_preempts() -> None:
    before = [
        quota("t1", row(Count=0), settings={"ResourceSharingConfig": {"Strategy": "Lend"}}),
        quota("t2", row(Count=0), settings=BORROWS),
        quota("t3", row(Count=4), settings={"ResourceSharingConfig": {"Strategy": "Lend"}}),
    ]
    policy = document(
        fixed("t1", row(Count=3)), fixed("t2", row(Count=1)), fixed("t3", row(Count=0)), pool=False,
        guardrails={"maxPreemptedGpus": 0},
    )  # fmt: skip
    jobs = [job("t1", "never", 8, minute=20), job("t1", "small", 1, minute=58), job("t2", "two", 2, minute=19)]
    jobs.append(job("t3", "runs", 2, minute=40, priority=50))
    work = queues(before, *jobs)
    world = snapshot(policy, nodes(4), before, kueue=work, scheduler_config=SCHEDULER)
    assert [e.name for e in plan_quotas(world, mode="apply").prediction.effects if e.effect == "preempted"] == []


BORROWS_MUCH = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 500}}


def dip(pairs: int, size: int) -> Snapshot:
    """Each giver hands `size` idle nodes to a taker whose job of one node waits; a borrower runs on all the rest.

    Nothing is free at the end, and everybody runs. Once all is given, the first raise lets its taker reclaim.
    """
    givers, takers = [f"g{n}" for n in range(pairs)], [f"t{n}" for n in range(pairs)]
    borrows = pairs * size - pairs
    own = -(-borrows // 5)
    before = [quota(team, row(Count=size), settings=BORROWS_MUCH) for team in givers]
    before += [quota(team, row(Count=0), settings=BORROWS_MUCH) for team in takers]
    before.append(quota("borrower", row(Count=own), settings=BORROWS_MUCH))
    promises = [fixed(team, row(Count=0), **BORROWS_MUCH) for team in givers]
    promises += [fixed(team, row(Count=size), **BORROWS_MUCH) for team in takers]
    policy = document(
        *promises, fixed("borrower", row(Count=own), **BORROWS_MUCH), pool=False, guardrails={"maxPreemptedGpus": 0}
    )
    jobs = [job("borrower", "runs", own + borrows, minute=1)]
    jobs += [job(team, f"{team}-waits", 1, minute=10 + number) for number, team in enumerate(takers)]
    kueue = queues(before, *jobs)
    return snapshot(policy, nodes(pairs * size + own), before, kueue=kueue, scheduler_config=SCHEDULER)


@pytest.mark.long
@pytest.mark.parametrize(("pairs", "size"), [(2, 2), (4, 3), (5, 3), (6, 2)])
def test_giving_and_taking_in_smaller_groups_avoids_what_the_dip_preempts(pairs: int, size: int) -> None:
    plan = plan_quotas(dip(pairs, size), mode="apply")
    assert [each.name for each in plan.prediction.effects if each.effect == "preempted"] == []
    assert sorted(each.name for each in plan.prediction.effects) == [f"t{n}-waits" for n in range(pairs)]
    assert plan.outcome is Outcome.APPLY
    assert 2 < max(change.wave for change in plan.changes) <= path.MOST_WAVES


def test_a_quota_that_cannot_be_created_again_is_not_deleted() -> None:
    """The failed quota holds a type that is over-committed: what it frees, it may not take again."""
    failed = quota("a", row("ml.q9.large", Accelerators=2), row(Count=1), status="UpdateRollbackFailed")
    world = snapshot(document(fixed("a", row(Count=1)), pool=False), nodes(1), [failed])
    plan = plan_quotas(world, mode="apply")
    deleted = {change.team for change in plan.changes if change.kind is ChangeKind.DELETE_QUOTA}
    created = {change.team for change in plan.changes if change.kind is ChangeKind.CREATE_QUOTA}
    assert deleted == created


def test_two_new_quotas_never_have_one_name() -> None:
    failed = quota("a", row(Count=1), name="b-quota", status="CreateFailed")
    world = snapshot(document(fixed("a", row(Count=1)), fixed("b", row(Count=1)), pool=False), nodes(2), [failed])
    names = [
        change.name for change in plan_quotas(world, mode="apply").changes if change.kind is ChangeKind.CREATE_QUOTA
    ]
    assert sorted(names) == ["b-quota", "b-quota-2"]


def test_a_failed_second_quota_leaves_the_queue_of_the_good_one() -> None:
    """`a` holds its good quota; the failed one is deleted, and nobody is preempted for it."""
    good, failed = (
        quota("a", row(Count=2), name="a-quota"),
        quota("a", row(Count=1), name="z-quota", status="CreateFailed"),
    )
    failed = failed.model_copy(update={"compute_quota_id": "id-second", "status": "DeleteFailed", "name": "a-failed"})
    other = quota("b", row(Count=1))
    work = queues(
        [good, other], job("a", "runs", 2, minute=1), job("b", "first", 1, minute=2), job("b", "waits", 1, minute=3)
    )
    policy = document(fixed("a", row(Count=2)), fixed("b", row(Count=1)), pool=False)
    plan = plan_quotas(
        snapshot(policy, nodes(3), [good, failed, other], kueue=work, scheduler_config=SCHEDULER), mode="apply"
    )
    assert [change.kind for change in plan.changes] == [ChangeKind.DELETE_QUOTA]
    assert [each.name for each in plan.prediction.effects if each.effect == "preempted"] == []


def test_a_path_on_which_jobs_come_to_rest_is_taken_where_another_is_endless(monkeypatch: pytest.MonkeyPatch) -> None:
    after = Player.after

    def endless(player: Player, stage: Stage, wave: Sequence[Change], number: int, **options: bool) -> Stage:
        if len(wave) > 1:
            raise LoopError("a and b preempt one another forever")
        return after(player, stage, wave, number, **options)

    monkeypatch.setattr(Player, "after", endless)
    plan = plan_quotas(returned(1, 0, bees_wait=False), mode="apply")
    assert plan.prediction.is_complete
    assert [change.wave for change in plan.changes] == [1, 2]
