"""Items of the table stay below half of what DynamoDB takes (400 KB) at 1,000 teams with 15 rows each."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any, get_args

import pytest

from taskgov.adapters.dynamodb import Table
from taskgov.allocation.applied_record import remember
from taskgov.allocation.doubts import state_findings
from taskgov.contracts.steps import Cause
from taskgov.hyperpod.model import ComputeQuotaConfig
from taskgov.ports import Execution
from taskgov.services.end_of_run import WRITTEN_NAMED, EndOfRun, RunOutcome, record_of
from taskgov.services.ended_owner import EndedOwner
from taskgov.services.state_identity import StateIdentity
from taskgov.services.written_in_run import WhatWasWritten
from taskgov.snapshot.identity import Claim
from taskgov.snapshot.records import AnnouncedWrite, AppliedQuota
from taskgov_cli.applying.document import Ended
from taskgov_cli.applying.plan import OnePlan
from taskgov_cli.manual_lock import Held, Interruption
from taskgov_cli.rollback import Rollback
from tests.allocation.world import quota, row, snapshot
from tests.services.test_sizes import POINTER, ROWS, SCRIPTS, TEAMS, everybody
from tests.support.memory import (
    CLUSTER_ARN,
    NOON,
    FixedClock,
    InMemoryDocuments,
    InMemoryHyperPod,
    InMemoryState,
    InMemoryWorkflow,
)
from tests.support.plans import plan_of, target, update

KB = 1000
MOST = 200 * KB
CAUSE = Cause(event_id="e-1", source="aws.sagemaker", detail_type="x", at=NOON, by="x" * 2000, what="y" * 2000)
LONG_TEAM, LONG_NAME = "t" * 45, "q" * 57
"""With a number of five digits: as long as HyperPod's namespaces and names of quotas may be."""


class Kept:
    """Stands for DynamoDB, and keeps the items that are put."""

    name = "table"

    def __init__(self) -> None:
        self.items: list[Mapping[str, Any]] = []

    def put_item(self, *, Item: Mapping[str, Any], **_: Any) -> None:  # noqa: N803 - boto3's name
        self.items.append(Item)


def item_size(value: Any) -> int:
    """Return what DynamoDB counts (Developer Guide, "DynamoDB item sizes and formats"), numbers at their most."""
    match value:
        case None | bool():
            return 1
        case str():
            return len(value.encode())
        case int() | Decimal():
            return 21
        case Mapping():
            return 3 + sum(1 + len(name.encode()) + item_size(one) for name, one in value.items())
        case list():
            return 3 + sum(1 + item_size(one) for one in value)
        case _:
            raise TypeError(type(value))


def stored(table: Kept) -> int:
    (item,) = table.items
    return item_size(item)


def names_of(teams: int) -> tuple[str, ...]:
    return tuple(f"{LONG_TEAM}{number:05}/{LONG_NAME}{number:05}" for number in range(teams))


@pytest.mark.parametrize("teams", [TEAMS, 10 * TEAMS])
@pytest.mark.parametrize("outcome", get_args(RunOutcome))
@pytest.mark.parametrize("script", SCRIPTS)
def test_the_record_of_a_run(outcome: RunOutcome, script: str, teams: int) -> None:
    table = Kept()
    end = EndOfRun(
        cluster_arn=CLUSTER_ARN,
        cluster_name="ml-cluster",
        run_id="ml-cluster-12-7bf73129-1",
        outcome=outcome,
        applied=TEAMS,
        started_at=NOON,
        ended_at=NOON,
        plan_pointer=POINTER,
        snapshot_pointer=POINTER,
        cause=CAUSE,
        error=f"the plan did not take effect: {everybody(script)}" * 20,
        written=names_of(teams),
    )
    Table(table).record_run(record_of(end))  # type: ignore[arg-type]
    assert (table.items[0]["written"], table.items[0]["applied"]) == (list(names_of(WRITTEN_NAMED)), TEAMS)
    assert 20 * KB < stored(table) <= 40 * KB


def test_the_records_of_plans_that_people_apply_and_roll_back() -> None:
    error, held = f"not settled: {everybody('x')}" * 20, Held("ana", 3, Interruption())
    plan = plan_of(update(0, "team-a", "quota0000000", 2, 1))
    written, ended = WhatWasWritten(names_of(TEAMS), error), Ended("unfinished", plan.plan_id, error)
    place: Any = None
    for record in (
        Rollback(place, plan, POINTER, "ana")._record(held, NOON, TEAMS, error),
        OnePlan(place, plan, "taskgov", None, "ana")._record(held, NOON, POINTER, ended, written, TEAMS),
    ):
        table = Kept()
        Table(table).record_run(record)  # type: ignore[arg-type]
        assert record.error is not None
        assert 8 * KB < stored(table) <= 40 * KB, record.run_id


def test_the_identity_of_a_table_whose_records_were_lost() -> None:
    """A stack that is new on the cluster takes over what stands, read after read, until it governs."""
    state = InMemoryState()
    identity = StateIdentity(InMemoryDocuments(), state)
    seen = snapshot(None, [], [quota(f"{LONG_TEAM}{number:05}", row()) for number in range(10 * TEAMS)])
    for _ in range(2):
        looked = identity.look(seen.cluster, (Claim("elder", NOON),), print)
        found = identity.stamped(looked, replace(seen, applied=state.applied_quotas(seen.cluster.arn)))
        identity.keep(found, POINTER)
        assert found.state is not None
        table = Kept()
        Table(table).record_stamp(CLUSTER_ARN, found.state)  # type: ignore[arg-type]
        assert stored(table) <= 5 * KB
        (finding,) = state_findings(found)
        assert finding.evidence["takenOver"] == len([record for record in found.applied if record.taken_over])
        assert " and 9990 more; present values were taken over" in finding.because


def rows(count: int) -> ComputeQuotaConfig:
    """Return a quota with all of its rows, each with all of its numbers."""
    resources = [
        {"InstanceType": f"ml.p5en.{row}xlarge", "Count": count, "VCpu": 96.5, "MemoryInGiB": 1999.75}
        for row in range(ROWS)
    ]
    return ComputeQuotaConfig.model_validate(
        {
            "ComputeQuotaResources": resources,
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
            "PreemptTeamTasks": "LowerPriority",
        }
    )


def of_a_month(levels: int) -> AppliedQuota:
    """Write a quota every two hours for 31 days, to one level after another; then announce a write."""
    now, applied = NOON, None
    demand = {f"ml.p5en.{row}xlarge": 99 for row in range(ROWS)}
    for number in range(12 * 31):
        before, after = rows(number % levels + 1), rows((number + 1) % levels + 1)
        change = replace(
            update(0, "team-a", "quota0000000", 2, 1), before=before, after=after, demand=demand, leased=demand
        )
        applied = remember(change, applied, quota_id="q", version=number + 1, plan_id=f"plan-{number}", now=now)
        now += timedelta(hours=2)
    assert applied is not None
    return replace(applied, announced=AnnouncedWrite(9999, rows(9), target("team-a"), rows(8)))


@pytest.mark.parametrize("levels", [7, 1000], ids=["few levels", "always another"])
def test_the_record_of_a_quota_after_a_month_of_writes(levels: int) -> None:
    applied, table = of_a_month(levels), Kept()
    assert min(levels, 58) <= len(applied.history or ()) <= 58
    Table(table).record_applied(CLUSTER_ARN, applied)  # type: ignore[arg-type]
    assert stored(table) <= MOST


@pytest.mark.parametrize("announced", [False, True])
def test_the_record_of_an_execution_that_died_uncaught(*, announced: bool) -> None:
    """Every quota was written by it; or all are announced, and nobody knows what became of that."""
    hyperpod, state, workflow = InMemoryHyperPod(), InMemoryState(), InMemoryWorkflow()
    arn = "arn:aws:states:us-east-1:111122223333:execution:reconcile:ml-cluster-12-7bf73129"
    execution = workflow.executions[arn] = Execution(arn, "FAILED", NOON)
    state.lock[CLUSTER_ARN] = (arn, 3, NOON.timestamp() + 300)
    for number in range(TEAMS):
        name = f"{LONG_TEAM}{number:05}"
        write = AnnouncedWrite(3, rows(2), target(name)) if announced else None
        at = NOON - timedelta(hours=1) if announced else NOON + timedelta(seconds=1)
        record = AppliedQuota(f"gone{number:08}", 2, rows(1), target(name), "plan-1", at, announced=write)
        state.record_applied(CLUSTER_ARN, record)
    owner = EndedOwner(hyperpod, state, workflow, FixedClock())
    assert owner.of_execution(CLUSTER_ARN, execution, CAUSE)
    assert not state.lock_of(CLUSTER_ARN).is_held(NOON)
    (record_kept,) = state.runs
    assert record_kept.applied == (0 if announced else TEAMS)
    assert "and 980 more" in (record_kept.error or "") or announced
    table = Kept()
    Table(table).record_run(record_kept)  # type: ignore[arg-type]
    assert stored(table) <= 20 * KB
