"""The smallest worlds in which workloads preempt one another forever, by Kueue's own rules."""

from __future__ import annotations

from taskgov.scheduling import KueueModel, settle
from tests.scheduling.builders import HYPERPOD_PREEMPTION, NOW, a_job, a_queue, a_world


def mixed_sizes() -> KueueModel:
    """`own` reclaims from `rich`, `big` takes `own` by priority, `rich` comes before `big` by priority, and so on."""
    return a_world(
        a_queue("a", cohort="pool", cpu="2", preemption=HYPERPOD_PREEMPTION),
        a_queue("b", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION),
        a_job("own", "a", cpu="1", priority=0, second=0),
        a_job("big", "a", cpu="6", priority=1, second=1),
        a_job("rich", "b", cpu="6", priority=2, second=2),
    )


def weight_zero() -> KueueModel:
    """Build the smallest case where fair sharing takes a workload out that comes back at once, forever.

    `a` has no weight, so as soon as it borrows its share is infinite. A big one takes `late` and, on the way, `home`;
    that is then within its quota, comes back before the big one, and lets `late` borrow again. Then the other big one
    tries.
    """
    world = a_world(
        a_queue("a", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION, fairSharing={"weight": "0"}),
        a_queue("b", cohort="pool", cpu="4", preemption=HYPERPOD_PREEMPTION, fairSharing={"weight": "10"}),
        fair_sharing=True,
    )
    world.load(
        [
            a_job("first", "a", cpu="1", priority=2, second=1),
            a_job("home", "a", cpu="3", priority=1, second=2),
            a_job("late", "a", cpu="4", priority=0, second=3),
        ],
    )
    settle(world, NOW)
    world.load([a_job("big", "b", cpu="5", second=0), a_job("huge", "b", cpu="5", priority=1, second=0)])
    return world


def equal_shares() -> KueueModel:
    """Build two teams whose shares are equal, as `chip` decides them, whoever of them has the `cpu` that is left.

    `older` starts first, and `newer` may take its place: a share that is at most that of its victim's queue allows it.
    """
    nothing = {"gpu": {"cpu": "0", "chip": "0"}}
    return a_world(
        a_queue("lender", cohort="pool", flavors={"gpu": {"cpu": "8", "chip": "2"}}),
        a_queue("a", cohort="pool", flavors=nothing, preemption=HYPERPOD_PREEMPTION, fairSharing={"weight": "10"}),
        a_queue("b", cohort="pool", flavors=nothing, preemption=HYPERPOD_PREEMPTION, fairSharing={"weight": "10"}),
        *(a_job(f"chip-of-{team}", team, requests={"chip": "1"}) for team in "ab"),
        a_job("own", "lender", requests={"cpu": "7"}),
        a_job("older", "a", second=1),
        a_job("newer", "b", second=2),
        fair_sharing=True,
    )
