"""Weeks of events, and a run after each: what holds for plans holds always, and the cluster comes to rest.

`make test` plays a few short weeks, always the same. `make weeks` plays more and longer ones (docs/testing.md).
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from hypothesis import HealthCheck, settings
from hypothesis.stateful import invariant

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.snapshot.model import Snapshot
from tests.prove.facts import facts_of
from tests.prove.goal import goal_failures, is_partial
from tests.prove.judging import judging_failures
from tests.prove.path import form_failures, waves_of
from tests.prove.play import play, preemption_failures
from tests.prove.proof import plan_to_apply
from tests.prove.writing import way_back_failures, write_path
from tests.weeks.events import Events
from tests.weeks.invariants import (
    byte_failures,
    floor_failures,
    lease_failures,
    left_alone_failures,
    memory_failures,
    pool_failures,
    resting_failures,
)
from tests.weeks.kinds import Resting

REST: Final = timedelta(days=9)
"""Longer than every hold, lease and period that is drawn."""
SHORT: Final = settings(
    max_examples=30,
    stateful_step_count=10,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)


class Weeks(Events):
    """A run follows each event. A person approves each plan that waits for one."""

    @invariant()
    def a_run_follows(self) -> None:
        """Plan, judge the plan, carry it out wave by wave, and look at what it left."""
        self.cluster.settle_queues()
        snapshot = self.cluster.look()
        plan = plan_to_apply(snapshot)
        nothing_wrong(snapshot, byte_failures(snapshot, plan, plan_to_apply))
        nothing_wrong(snapshot, left_alone_failures(snapshot, plan))
        nothing_wrong(snapshot, lease_failures(snapshot, plan_to_apply))
        self._judge(snapshot, plan)
        if plan.outcome is Outcome.NEEDS_APPROVAL:
            plan = plan_quotas(snapshot, mode="apply", approved_changes=changes_sha256(plan))
            assert plan.outcome is Outcome.APPLY
        if plan.outcome is Outcome.APPLY:
            self._write(snapshot, plan)
        elif plan.outcome is Outcome.NOTHING_TO_DO:
            nothing_wrong(snapshot, pool_failures(facts_of(snapshot, plan), snapshot))
        self.resting = None if plan.changes or self.cluster.mistaken else Resting(plan.recheck_at)
        self.broken_off, self.cluster.mistaken, self.next_look = None, False, plan.recheck_at

    def _judge(self, snapshot: Snapshot, plan: Plan) -> None:
        """Judge the path of a plan, whether it is to be applied or not."""
        facts, waves = facts_of(snapshot, plan), waves_of(plan)
        nothing_wrong(snapshot, form_failures(facts))
        written = write_path(facts, waves, self.cluster.ledger(plan))
        nothing_wrong(snapshot, written.failures)
        played = play(facts, waves, 0) if waves and snapshot.kueue.workloads else None
        if played is not None:
            nothing_wrong(snapshot, preemption_failures(facts, played))
        nothing_wrong(snapshot, judging_failures(facts, played))
        nothing_wrong(snapshot, way_back_failures(facts, waves, written))
        after = written.account.snapshot(snapshot)
        nothing_wrong(snapshot, floor_failures(facts, after))
        if not is_partial(snapshot):
            nothing_wrong(snapshot, pool_failures(facts, after))
            nothing_wrong(snapshot, goal_failures(facts, written, played.kueue if played else None, plan_to_apply))

    def _write(self, snapshot: Snapshot, plan: Plan) -> None:
        """Carry the plan out, as far as it is not broken off."""
        waves, broken = waves_of(plan), self.broken_off
        if broken is not None:
            begun = waves[broken.waves][: broken.writes] if broken.waves < len(waves) else ()
            waves = [*waves[: broken.waves], *([begun] if begun else [])]
        written = write_path(facts_of(snapshot, plan), waves, self.cluster.ledger(plan))
        changes = [change for wave in waves for change in wave]
        before = self.cluster.applied
        self.cluster.take(written.account, plan, changes)
        if broken is not None and broken.lost and changes:
            self.cluster.lose_record(changes[-1], before)
        self.cluster.settle_queues()

    def _pass(self, time: timedelta) -> None:
        """Let time pass; a cluster at rest stays at rest until `recheckAt`."""
        if self.resting is not None:
            nothing_wrong(None, resting_failures(self.cluster.look(), self.resting.recheck_at, time, plan_to_apply))
        super()._pass(time)

    def teardown(self) -> None:
        """Let the last event be long ago: one run reaches the goal, whatever the way to it was."""
        if not self.cluster.told:
            return
        self.cluster.pass_time(REST)
        self.cluster.settle_queues()
        snapshot = self.cluster.look()
        plan = plan_to_apply(snapshot)
        facts = facts_of(snapshot, plan)
        written = write_path(facts, waves_of(plan), self.cluster.ledger(plan))
        nothing_wrong(snapshot, written.failures)
        nothing_wrong(snapshot, goal_failures(facts, written, None, plan_to_apply))
        nothing_wrong(snapshot, memory_failures(snapshot, plan_to_apply))


def nothing_wrong(snapshot: Snapshot | None, failures: Iterable[str]) -> None:
    found = list(failures)
    assert not found, f"at {_moment(snapshot)}: {'; '.join(found)}"


def _moment(snapshot: Snapshot | None) -> datetime | str:
    return "rest" if snapshot is None else snapshot.taken_at


TestWeeks = Weeks.TestCase
TestWeeks.settings = SHORT
