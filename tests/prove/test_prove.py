"""The prover finds what is wrong with a plan: each test breaks a sound one in one way, through the planner it gets."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from taskgov.allocation.plan import Change, ChangeKind, Outcome, Plan
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.policy.document import PolicyDocument
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import Snapshot
from tests.allocation.work import SCHEDULER, job, queues
from tests.allocation.world import G5, document, fixed, nodes, quota, row, snapshot
from tests.prove.__main__ import main
from tests.prove.proof import plan_to_apply, prove

Breaking = Callable[[Plan], Plan]


def swap(policy: PolicyDocument | None = None) -> Snapshot:
    """A full cluster in which one team gives two machines to another."""
    quotas = [quota("ant", row(Count=4)), quota("bee", row(Count=2))]
    wanted = policy or document(fixed("ant", row(Count=2)), fixed("bee", row(Count=4)), pool=False)
    return snapshot(wanted, nodes(6), quotas)


def reclaim() -> Snapshot:
    """The nodes are back: one team borrows with running work, another waits for its own."""
    quotas = [quota("ant", row(Count=1)), quota("bee", row(Count=2))]
    busy = [quota("ant", row(Count=0)), quota("bee", row(Count=4))]
    work = queues(busy, job("bee", "long", 4), job("ant", "waiting", 2, minute=5))
    now = queues(quotas)
    wanted = document(fixed("ant", row(Count=2)), fixed("bee", row(Count=4)), pool=False)
    return snapshot(wanted, nodes(6), quotas, kueue=replace(now, workloads=work.workloads), scheduler_config=SCHEDULER)


def broken_by(breaking: Breaking, world: Snapshot) -> tuple[str, ...]:
    """Return what the prover says of the first plan once it is broken; plans after it are left as they are."""
    first = plan_to_apply(world)

    def planner(asked: Snapshot) -> Plan:
        return breaking(first) if asked is world else plan_to_apply(asked)

    return prove(world, planner)


def with_changes(plan: Plan, changes: Sequence[Change]) -> Plan:
    numbered = tuple(replace(change, index=index) for index, change in enumerate(changes))
    return replace(plan, changes=numbered)


def test_a_sound_plan_is_proven() -> None:
    assert prove(swap()) == ()


def test_waves_that_are_merged_are_seen() -> None:
    failures = broken_by(lambda plan: with_changes(plan, [replace(each, wave=1) for each in plan.changes]), swap())
    assert any("adds up to" in failure for failure in failures)


def test_a_write_of_what_stands_is_seen() -> None:
    def breaking(plan: Plan) -> Plan:
        first = plan.changes[0]
        assert first.before is not None
        pointless = replace(first, wave=0, after=first.before)
        return with_changes(plan, [pointless, *(replace(each, wave=0) for each in plan.changes[1:])])

    assert any("as it stands" in failure for failure in broken_by(breaking, swap()))


def test_a_preemption_that_was_not_predicted_is_seen() -> None:
    """Raising the team that waits before the one that borrows takes the machines from running work."""

    def breaking(plan: Plan) -> Plan:
        bound = {change.team: replace(change, preempts=()) for change in plan.changes}
        ordered = [replace(bound["ant"], wave=1), replace(bound["bee"], wave=2)]
        forgotten = replace(plan.prediction, effects=(), preempted_gpus=0)
        return replace(with_changes(plan, ordered), prediction=forgotten)

    assert any("nobody said so" in failure for failure in broken_by(breaking, reclaim()))


def test_a_prediction_that_is_missing_is_seen() -> None:
    def breaking(plan: Plan) -> Plan:
        return replace(plan, prediction=replace(plan.prediction, simulated=False, not_modelled=("no reason",)))

    assert any("nothing is predicted" in failure for failure in broken_by(breaking, reclaim()))


def test_a_goal_that_is_not_reached_is_seen() -> None:
    failures = broken_by(lambda plan: with_changes(plan, plan.changes[:1]), swap())
    assert any("the plan after the run is not empty" in failure for failure in failures)


def test_a_stale_version_is_seen() -> None:
    def breaking(plan: Plan) -> Plan:
        return with_changes(plan, [replace(each, target_version=7) for each in plan.changes])

    assert any("TargetVersion 7" in failure for failure in broken_by(breaking, swap()))


def test_two_writes_of_one_quota_in_one_wave_are_seen() -> None:
    def breaking(plan: Plan) -> Plan:
        return with_changes(plan, [*plan.changes[:1], *plan.changes])

    assert any("refuses a write" in failure for failure in broken_by(breaking, swap()))


def test_a_name_that_exists_is_seen() -> None:
    def breaking(plan: Plan) -> Plan:
        made = replace(plan.changes[0], kind=ChangeKind.CREATE_QUOTA, resource_id=None, before=None, wave=3)
        return with_changes(plan, [*plan.changes, made])

    assert any("ant-quota exists" in failure for failure in broken_by(breaking, swap()))


def test_a_number_that_a_32_bit_float_does_not_hold_is_seen() -> None:
    def breaking(plan: Plan) -> Plan:
        odd = ComputeQuotaConfig.model_validate({"ComputeQuotaResources": [row(VCpu=1.123456789)]})
        return with_changes(plan, [replace(each, after=odd) for each in plan.changes[:1]])

    assert any("comes back as 1.1234568" in failure for failure in broken_by(breaking, swap()))


def test_a_change_that_forgot_what_stood_cannot_be_rolled_back() -> None:
    def breaking(plan: Plan) -> Plan:
        return with_changes(plan, [replace(each, before=None) for each in plan.changes])

    assert any("rolling back" in failure for failure in broken_by(breaking, swap()))


LIMITS = {
    "max-decrease": {"maxDecreasePercent": 25},
    "max-decrease-per-period": {"maxDecreasePerPeriod": {"percent": 25, "hours": 24}},
    "max-increase": {"maxIncreasePercent": 50},
    "max-increase-per-period": {"maxIncreasePerPeriod": {"percent": 50, "hours": 24}},
    "minimum-quota": {"minimumQuota": {"ant": 3}},
    "2 GPUs change hands": {"approveAbove": {"changedGpus": 1}},
}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_that_lets_through_is_seen(limit: str) -> None:
    teams = fixed("ant", row(Count=2)), fixed("bee", row(Count=4))
    world = swap(document(*teams, pool=False, guardrails=LIMITS[limit]))
    assert plan_to_apply(world).outcome in {Outcome.BLOCKED, Outcome.NEEDS_APPROVAL}
    assert prove(world) == ()
    failures = broken_by(lambda plan: replace(plan, outcome=Outcome.APPLY), world)
    assert any(limit in failure for failure in failures)


def test_a_plan_that_is_blocked_for_nothing_is_seen() -> None:
    failures = broken_by(lambda plan: replace(plan, outcome=Outcome.BLOCKED), swap())
    assert any("no limit is broken" in failure for failure in failures)


def test_a_decrease_by_exactly_the_limit_is_none() -> None:
    teams = fixed("ant", row(Count=2)), fixed("bee", row(Count=4))
    world = swap(document(*teams, pool=False, guardrails={"maxDecreasePercent": 50, "maxIncreasePercent": 100}))
    assert plan_to_apply(world).outcome is Outcome.APPLY
    assert prove(world) == ()


def test_a_low_write_that_takes_is_seen() -> None:
    """A quota that gives GPUs and takes vCPUs on a full type is written low first."""
    quotas = [
        quota("ant", row(G5, Accelerators=4, VCpu=64, MemoryInGiB=256)),
        quota("bee", row(G5, Accelerators=2, VCpu=128, MemoryInGiB=512)),
    ]
    wanted = document(
        fixed("ant", row(G5, Accelerators=2, VCpu=96, MemoryInGiB=256)),
        fixed("bee", row(G5, Accelerators=4, VCpu=96, MemoryInGiB=512)),
        pool=False,
    )
    world = snapshot(wanted, nodes(6), quotas)
    assert prove(world) == ()
    assert any(change.is_low for change in plan_to_apply(world).changes)

    def breaking(plan: Plan) -> Plan:
        goals = {change.team: change.after for change in plan.changes if not change.is_low}
        taking = [replace(each, after=goals[each.team]) if each.is_low else each for each in plan.changes]
        return with_changes(plan, taking)

    assert any("the low write takes" in failure for failure in broken_by(breaking, world))


def test_the_command_names_the_file_and_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sound.json").write_bytes(snapshot_to_json(swap()))
    (tmp_path / "torn.json").write_text("{")
    assert main([str(tmp_path)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("torn.json: cannot be read")
    assert lines[-1] == "1 passed, 1 failed"


def test_the_command_says_when_everything_is_proven(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sound.json").write_bytes(snapshot_to_json(swap()))
    assert main([str(tmp_path)]) == 0
    assert capsys.readouterr().out == "1 passed, 0 failed\n"


def test_a_folder_without_worlds_proves_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 1
    assert "no snapshots" in capsys.readouterr().err
