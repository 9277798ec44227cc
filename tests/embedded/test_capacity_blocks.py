"""A Capacity Block on plain EKS: told before it ends, and at its end quotas shrink without anybody's approval."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from tests.embedded.test_mass_loss import approvals, counts, govern, of_loss, opened, resync
from tests.support.ec2_machines import BLOCK, buy_block, launch_in_ec2, lose_nodes

if TYPE_CHECKING:
    from taskgov.findings import Finding
    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long


def told(world: World) -> list[Finding]:
    """Return what the newest plan says of machines that leave."""
    answers = [result.value for result in world.stack.results if result.function == "PlanQuotasFunction"]
    findings = world.plan_at(answers[-1]["plan"]).findings
    return [finding for finding in findings if finding.code.startswith("capacity-end")]


def test_the_machines_of_a_block_are_planned_for_and_leave_in_time() -> None:
    """One story in one world: the block is told, extended, cannot be read for a while, and ends."""
    with opened("kueue") as world:
        machines = launch_in_ec2(world)
        leaving = sorted(machines)[-2:]
        block = buy_block(world, [machines[name] for name in leaving], world.clock.now + timedelta(hours=5.5))
        govern(world)
        [finding] = told(world)
        assert (finding.subject, finding.evidence["kind"]) == (BLOCK, "Capacity Block")
        assert finding.evidence["costs"] == "team-a 2 -> 1 ml.g5.8xlarge; team-b 2 -> 1 ml.g5.8xlarge"

        block.ends_at += timedelta(days=14)
        resync(world)
        assert told(world) == []

        block.ends_at -= timedelta(days=14)
        resync(world)
        assert told(world) == [finding]
        world.stack.faults.fail(
            "ec2", "DescribeCapacityReservations", code="UnauthorizedOperation", message="not yours", times=99
        )
        resync(world)
        known, unknown = told(world)
        assert known.evidence["leavesAt"] == finding.evidence["leavesAt"], "it is still known from before"
        assert "describe capacity reservations: UnauthorizedOperation: not yours" in unknown.because
        assert counts(world) == {"team-a": 2, "team-b": 2}
        world.stack.faults.clear()

        world.stack.advance((block.ends_at - timedelta(minutes=29) - world.clock.now).total_seconds())
        world.stack.run_until_quiet(600)
        assert counts(world) == {"team-a": 1, "team-b": 1}, "the run came in time, by itself"

        assert lose_nodes(world, 2) == leaving
        resync(world)
        assert counts(world) == {"team-a": 1, "team-b": 1}
        assert (of_loss(world), approvals(world)) == ([], [])
