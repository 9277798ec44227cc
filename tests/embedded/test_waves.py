"""A plan that writes a quota twice, played by the deployed machine and functions; only the plan is made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.adapters.dynamodb import APPLIED
from taskgov.allocation.codec import changes_sha256, plan_to_json
from taskgov.allocation.plan import Change, Outcome
from taskgov.contracts.steps import PlanQuotasResult, Pointer
from taskgov.services.plan_path import wave_ends
from taskgov_embedded.aws_api.faults import Fault, FunctionCrash
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World
from tests.support.operating import be, taskgov
from tests.support.plans import low_write, plan_of, second_write, update

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskgov_embedded.aws_api.aws_requests import Call

pytestmark = pytest.mark.long

TYPE = "ml.g5.8xlarge"
A, B, C = "team-a", "team-b", "team-c"
BEFORE = {A: 2, B: 2, C: 0}
GOAL = {A: 3, B: 0, C: 1}


class Rig:
    """A cluster with three quotas, and a plan by hand: team A gives 1 and B 2, then C takes 1, then A 2."""

    def __init__(self, world: World) -> None:
        self.world, self.stack = world, world.stack
        self.person = self.stack.client("sagemaker", person="ana")
        self.ids = {team: self._create(team, count) for team, count in BEFORE.items()}
        self.stack.run_until_quiet()
        self.plan = replace(plan_of(*self.changes()), cluster_arn=world.cluster_arn)
        self._hooks: list[tuple[str, Mapping[str, Any], Callable[[], None]]] = []
        self._invoke = self.stack.account.requests._answers["lambda", "Invoke"]
        self.stack.account.requests.answer("lambda", "Invoke", self._called)

    def changes(self) -> tuple[Change, ...]:
        return (
            low_write(0, A, self.ids[A], 2, 1),
            replace(update(1, B, self.ids[B], 2, 0), wave=1),
            replace(update(2, C, self.ids[C], 0, 1), wave=2),
            second_write(3, A, self.ids[A], 1, 3, wave=3),
        )

    def run(self) -> None:
        bus = self.stack.outputs["BusName"]
        detail = {"clusterArn": self.world.cluster_arn, "by": "ana"}
        self.stack.bus.publish("taskgov.operator", "Reconcile Requested", detail, bus=bus)
        self.stack.run_until_quiet(3600)

    def counts(self) -> dict[str, int]:
        return {
            quota["ComputeQuotaTarget"]["TeamName"]: sum(
                row["Count"] for row in quota["ComputeQuotaConfig"]["ComputeQuotaResources"]
            )
            for quota in self.stack.sagemaker.quotas(self.world.cluster_arn)
        }

    def edit(self, team: str, count: int) -> None:
        quota = self.person.describe_compute_quota(ComputeQuotaId=self.ids[team])
        self.person.update_compute_quota(
            ComputeQuotaId=self.ids[team],
            TargetVersion=quota["ComputeQuotaVersion"],
            ComputeQuotaConfig=_config(count),
            ComputeQuotaTarget={"TeamName": team, "FairShareWeight": 10},
        )

    def writes(self) -> list[str]:
        """Return whose quotas the automation wrote, in order; what was refused too."""
        names = {quota_id: team for team, quota_id in self.ids.items()}
        mine = [call for call in self.stack.calls if "ApplyChangeRole" in call.principal.name]
        return [names[call.params["ComputeQuotaId"]] for call in mine if call.operation == "UpdateComputeQuota"]

    def records(self, prefix: str) -> list[Mapping[str, Any]]:
        table = self.stack.client("dynamodb").scan(TableName=self.stack.physical("GovernanceTable"))
        return [item for item in table["Items"] if item["sk"]["S"].startswith(prefix)]

    def applied(self, team: str) -> Any:
        (item,) = self.records(f"QUOTA#{self.ids[team]}")
        return APPLIED.read(item["record"]["S"])

    def outcomes(self) -> list[tuple[str, str]]:
        found = [(item["outcome"]["S"], item["applied"]["N"]) for item in self.records("RUN#")]
        return [one for one in found if one[0] != "nothing-to-do"]

    def once_before(self, step: str, do: Callable[[], None], **payload: Any) -> None:
        """Do something right before the first call of a step that has this in its payload."""
        self._hooks.append((step, payload, do))

    def _create(self, team: str, count: int) -> str:
        created = self.person.create_compute_quota(
            Name=team,
            ClusterArn=self.world.cluster_arn,
            ComputeQuotaConfig=_config(count),
            ComputeQuotaTarget={"TeamName": team, "FairShareWeight": 10},
            ActivationState="Enabled",
        )
        return str(created["ComputeQuotaId"])

    def _called(self, call: Call) -> Mapping[str, Any] | None:
        payload = json.loads(call.params["Payload"])
        for hook in list(self._hooks):
            step, wanted, do = hook
            if self._is(step, call) and payload.items() >= wanted.items():
                self._hooks.remove(hook)
                do()
        return self._plan_by_hand() if self._is("PlanQuotasFunction", call) else self._invoke(call)

    def _is(self, step: str, call: Call) -> bool:
        return self.stack.physical(step) in call.params["FunctionName"]

    def _plan_by_hand(self) -> Mapping[str, Any]:
        is_due = self.counts() == BEFORE and not self.outcomes()
        nothing = replace(self.plan, plan_id="plan-0", changes=(), outcome=Outcome.NOTHING_TO_DO)
        plan = self.plan if is_due else nothing
        body, key = plan_to_json(plan), f"plans/ml-cluster/{plan.outcome}.json"
        self.stack.client("s3").put_object(Bucket=self.stack.outputs["BucketName"], Key=key, Body=body)
        result = PlanQuotasResult(
            outcome=plan.outcome,
            plan_id=plan.plan_id,
            plan=Pointer(bucket=self.stack.outputs["BucketName"], key=key, sha256=sha256(body).hexdigest()),
            change_count=len(plan.changes),
            wave_count=len(wave_ends(plan.changes)),
            changes_sha256=changes_sha256(plan),
            summary="by hand",
        )
        return {"StatusCode": 200, "ExecutedVersion": "1", "Payload": json.dumps(result.to_json()).encode()}


def _config(count: int) -> dict[str, Any]:
    return {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": count}]}


@pytest.fixture
def rig() -> Iterator[Rig]:
    walkthrough = {
        "name": "waves",
        "source": "a plan made by hand",
        "about": "waves of writes",
        "mode": "apply",
        "starts": "2026-11-20T09:00:00Z",
        "cluster": {"groups": [{"instanceType": TYPE, "count": 4}]},
        "steps": [{"title": "waves"}],
    }
    with World(Walkthrough.model_validate(walkthrough)) as opened:
        yield Rig(opened)


def test_a_quota_that_is_written_twice_reaches_its_goal_in_one_run(rig: Rig) -> None:
    rig.run()
    assert rig.counts() == GOAL
    assert rig.writes() == [A, B, C, A]
    assert rig.outcomes() == [("applied", "3")]
    applied = rig.applied(A)
    assert (applied.version, applied.began_from) == (3, None)
    assert [past.config.compute_quota_resources[0].count for past in applied.history] == [2]
    assert rig.stack.timeline.of("denied") == []


def test_a_wave_begins_when_the_one_before_it_has_settled(rig: Rig) -> None:
    rig.run()
    moments = [
        (moment.what.split()[1] if moment.kind == "settled" else moment.what.split()[0])
        for moment in rig.stack.timeline.of("settled")
    ]
    updates = [what for what in moments if what in BEFORE][len(BEFORE) :]
    assert sorted(updates[:2]) == [A, B]
    assert updates[2:] == [C, A]


@pytest.mark.parametrize(
    ("index", "tried"),
    [(0, [A, B]), (2, [A, B, C]), (3, [A, B, C, A])],
    ids=["the first", "the second", "the third"],
)
def test_after_a_failure_in_a_wave_the_run_ends_there_and_nothing_is_taken_back(
    rig: Rig, index: int, tried: list[str]
) -> None:
    team = rig.plan.changes[index].team

    def fail() -> None:
        governance = rig.stack.sagemaker.governance
        governance.fail_next("UpdateComputeQuota", f"{team} does not answer")

    rig.once_before("ApplyChangeFunction", fail, index=index)
    rig.run()
    assert rig.writes() == tried
    assert rig.outcomes() == [("unfinished", str(len(set(tried))))]
    (refused,) = rig.records("REFUSED#")
    assert "does not answer" in refused["record"]["S"]
    assert "failed-to-settle" in refused["record"]["S"]


def test_a_call_that_comes_twice_writes_each_quota_once(rig: Rig) -> None:
    applying = rig.stack.physical("ApplyChangeFunction")
    rig.stack.faults.duplicate("lambda", "Invoke", times=100, when=lambda call: applying in call["FunctionName"])
    rig.run()
    assert rig.counts() == GOAL
    assert rig.applied(A).version == 3
    assert rig.outcomes() == [("applied", "3")]


def test_a_function_that_ends_right_after_the_second_write_has_made_it_once(rig: Rig) -> None:
    def crash() -> None:
        ends = Fault("sagemaker", "UpdateComputeQuota", "raise_after", 1, error=FunctionCrash)
        rig.stack.faults._add(ends)

    rig.once_before("ApplyChangeFunction", crash, index=3)
    rig.run()
    assert rig.counts() == GOAL
    assert rig.stack.faults.pending() == ()
    assert (rig.applied(A).version, rig.outcomes()) == (3, [("applied", "3")])


def test_an_edit_between_the_two_writes_stands_and_nothing_is_forced_or_taken_back(rig: Rig) -> None:
    rig.once_before("ApplyChangeFunction", lambda: rig.edit(A, 4), index=2)
    rig.run()
    assert rig.counts() == {A: 4, B: 0, C: 1}
    assert rig.applied(A).began_from == rig.plan.changes[0].before
    # It looked again, and the plan of the test had nothing more to do: A, B and C were written.
    assert rig.outcomes() == [("applied", "3")]


def test_a_lock_that_is_lost_between_two_waves_ends_the_writing(rig: Rig) -> None:
    def lose() -> None:
        key = {"pk": {"S": f"CLUSTER#{rig.world.cluster_arn}"}, "sk": {"S": "STATE"}}
        rig.stack.client("dynamodb").update_item(
            TableName=rig.stack.physical("GovernanceTable"),
            Key=key,
            UpdateExpression="SET lockOwner = :other, lockExpires = :then, fencingToken = :token",
            ExpressionAttributeValues={":other": {"S": "another"}, ":then": {"N": "9999999999"}, ":token": {"N": "99"}},
        )

    rig.once_before("ApplyChangeFunction", lose, index=2)
    rig.run()
    assert rig.counts() == {A: 1, B: 0, C: 0}
    assert rig.outcomes() == [("unfinished", "2")]


def test_the_command_takes_the_plan_back_wave_by_wave(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.run()
    be("operator", rig.world, monkeypatch)
    changes = json.loads(taskgov("rollback", "plan-1", "--json").stdout)["changes"]
    assert {each["standing"] for each in changes} == {"stands"}
    places = [(each["index"], each["wave"], each["isLow"]) for each in changes]
    assert places == [(3, 3, False), (2, 2, False), (1, 1, False), (0, 1, True)]
    done = taskgov("rollback", "plan-1", "--yes")
    assert "update-quota, first of two writes" in done.stdout
    assert "Restored 3 of 3" in done.stdout
    assert rig.counts() == BEFORE
    assert (rig.applied(A).version, rig.applied(A).began_from) == (5, None)


def test_the_command_takes_back_what_a_run_left_at_its_low_write(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.once_before("ApplyChangeFunction", lambda: rig.edit(C, 4), index=2)
    rig.run()
    assert rig.counts() == {A: 1, B: 0, C: 4}
    rig.edit(C, 0)
    rig.stack.run_until_quiet(600)
    be("operator", rig.world, monkeypatch)
    key = "plans/ml-cluster/apply.json"
    body = rig.stack.client("s3").get_object(Bucket=rig.stack.outputs["BucketName"], Key=key)["Body"].read()
    pointer = {"bucket": rig.stack.outputs["BucketName"], "key": key, "sha256": sha256(body).hexdigest()}
    table = rig.stack.physical("GovernanceTable")
    by_plan_1 = {"planId": {"S": "plan-1"}, "plan": {"S": json.dumps(pointer)}}
    for item in rig.records("RUN#"):
        rig.stack.client("dynamodb").put_item(TableName=table, Item={**item, **by_plan_1})
    shown = json.loads(taskgov("rollback", "plan-1", "--yes", "--json").stdout)
    standing = {each["index"]: each["standing"] for each in shown["changes"]}
    assert standing == {3: "as-before", 2: "as-before", 1: "stands", 0: "stands"}
    assert (shown["written"], shown["error"]) == (2, None)
    assert rig.counts() == BEFORE
