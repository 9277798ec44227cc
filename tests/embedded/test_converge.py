"""What fails while a plan is applied: the run ends in a safe state, and the runs after it go on from there.

Ten nodes; alpha, beta, gamma and the pool hold 4, 3, 2 and 1 and are to become 3, 2, 4 and 1. After each write the sum
is looked at by code that shares nothing with the product.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.aws_api.faults import Fault, FunctionCrash
from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World
from tests.faults.scenario import _document
from tests.support.forked import in_a_fork

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov_embedded.functions.runtime import Result

pytestmark = pytest.mark.long

TYPE = "ml.g5.8xlarge"
BEFORE = {"alpha": 4, "beta": 3, "gamma": 2, "shared-pool": 1}
WANTED = {"alpha": 3, "beta": 2, "gamma": 4, "shared-pool": 1}
CAPACITY = 10


class Rig:
    """The governed cluster, and every state that its quotas were in since."""

    def __init__(self, world: World) -> None:
        self.world, self.stack = world, world.stack
        self.governance = self.stack.sagemaker.governance
        self.actor = Actor(world)
        self.actor._policy(_document(60, {"alpha": 4, "beta": 3, "gamma": 2}))
        self.stack.run_until_quiet(600)
        assert self.counts() == BEFORE
        self.started = len(self.stack.calls)
        self.records_before = {item["sk"]["S"] for item in self.items("RUN#")}

    def change(self, seconds: float = 3600) -> None:
        """Put the new numbers into force, and let everything happen for so long."""
        self.actor._policy(_document(60, {"alpha": 3, "beta": 2, "gamma": 4}))
        self.stack.run_until_quiet(seconds)

    def resync(self) -> None:
        self.stack.advance(3600, schedules=["ResyncAllSchedule"])
        self.stack.run_until_quiet(1800)

    def counts(self) -> dict[str, int]:
        quotas = self.stack.sagemaker.quotas(self.world.cluster_arn)
        return {quota["ComputeQuotaTarget"]["TeamName"]: _count(quota["ComputeQuotaConfig"]) for quota in quotas}

    def quota_id(self, team: str) -> str:
        return str(self.world.quota_named(team)["ComputeQuotaId"])

    def writes(self) -> list[tuple[str, int]]:
        """Return the writes that the service took, in order: whose quota, and what it holds from then on."""
        teams = {self.quota_id(team): team for team in WANTED}
        return [
            (teams[call.params["ComputeQuotaId"]], _count(call.params["ComputeQuotaConfig"]))
            for call in self.stack.calls[self.started :]
            if call.operation == "UpdateComputeQuota" and call.error is None
        ]

    def sums(self) -> list[int]:
        held, sums = dict(BEFORE), []
        for team, count in self.writes():
            held[team] = count
            sums.append(sum(held.values()))
        return sums

    def items(self, prefix: str) -> list[Mapping[str, Any]]:
        found = self.stack.client("dynamodb").scan(TableName=self.stack.physical("GovernanceTable"))["Items"]
        return sorted((item for item in found if item["sk"]["S"].startswith(prefix)), key=lambda item: item["sk"]["S"])

    def records(self) -> list[tuple[str, int]]:
        """Return outcome and number of writes of each run that had something to do, or could not do it."""
        new = [item for item in self.items("RUN#") if item["sk"]["S"] not in self.records_before]
        found = [(item["outcome"]["S"], int(item["applied"]["N"])) for item in new]
        return [one for one in found if one[0] != "nothing-to-do"]

    def errors(self) -> list[str]:
        return [item["error"]["S"] for item in self.items("RUN#") if "error" in item]

    def failed_executions(self) -> list[Any]:
        machine = self.stack.physical("ReconcileStateMachine")
        asked = {"stateMachineArn": machine, "statusFilter": "FAILED"}
        return list(self.stack.client("stepfunctions").list_executions(**asked)["executions"])

    def values(self, results: Iterable[Result], metric: str) -> set[float]:
        """Return the values that the governed cluster's metric had in some invocations."""
        name = self.world.cluster_arn.rpartition("/")[2]
        data = [datum for result in results for datum in result.metrics if datum.name == metric]
        names = {name, self.world.walkthrough.cluster.name}
        return {value for datum in data if names & set(dict(datum.dimensions).values()) for value in datum.values}

    def settle_slowly(self, team: str, seconds: float) -> None:
        """Let the writes of one team's quota take so long."""
        own, governance, slow = self.governance._settle_later, self.governance, self.quota_id(team)

        def settle_later(governed: Any, operation: str) -> None:
            usual = governance.settle_seconds
            governance.settle_seconds = seconds if governed.id == slow else usual
            own(governed, operation)
            governance.settle_seconds = usual

        governance._settle_later = settle_later  # type: ignore[method-assign]


def _count(config: Mapping[str, Any]) -> int:
    return sum(int(row["Count"]) for row in config["ComputeQuotaResources"])


@pytest.fixture(scope="module")
def rig() -> Iterator[Rig]:
    walkthrough = {
        "name": "converge",
        "source": "the faults of this file",
        "about": "what fails while a plan is applied",
        "mode": "apply",
        "starts": "2026-11-20T09:00:00Z",
        "cluster": {"groups": [{"instanceType": TYPE, "count": CAPACITY}]},
        "steps": [{"title": "converge"}],
    }
    with World(Walkthrough.model_validate(walkthrough)) as opened:
        yield Rig(opened)


def is_safe(rig: Rig) -> bool:
    """Say whether the sum never rose above capacity, and no lock is held."""
    (state,) = rig.items("STATE")
    return all(total <= CAPACITY for total in rig.sums()) and "lockOwner" not in state


@in_a_fork
def test_a_cluster_that_cannot_be_read_turns_nothing_red_but_its_own_metric(rig: Rig) -> None:
    """A failed execution would ring ReconcileFailedAlarm, a failed function NewVersionErrorsAlarm."""
    before = len(rig.stack.results)
    denied = rig.stack.faults.fail("sagemaker", "ListClusterNodes", code="AccessDeniedException", times=10**6)
    rig.change()
    assert rig.records() == [("unreadable", 0)]
    assert "AccessDeniedException" in rig.errors()[-1]
    assert rig.failed_executions() == []
    since = rig.stack.results[before:]
    assert [result.function for result in since if result.is_error] == []
    assert rig.values(since, "ClusterUnreadable") >= {1}
    assert rig.values(since, "RunsFailed") == {0}
    denied.times = 0
    rig.resync()
    assert rig.counts() == WANTED
    assert is_safe(rig)


@in_a_fork
def test_a_run_that_fails_for_any_other_reason_still_rings(rig: Rig) -> None:
    before = len(rig.stack.results)
    rig.stack.faults.fail("dynamodb", "Query", code="InternalServerError", status=500, times=10**6)
    rig.change(1200)
    assert rig.failed_executions() != []
    assert rig.values(rig.stack.results[before:], "RunsFailed") == {1}


SLOWLY = (5, 15, 20)


@pytest.mark.parametrize("minutes", SLOWLY)
@in_a_fork
def test_a_raised_quota_that_settles_slowly_is_waited_for_and_nothing_is_undone(rig: Rig, minutes: int) -> None:
    rig.settle_slowly("gamma", minutes * 60)
    rig.change()
    rig.resync()
    assert rig.counts() == WANTED
    assert sorted(rig.writes()) == [("alpha", 3), ("beta", 2), ("gamma", 4)], "each is written once"
    assert rig.records() == [("applied" if minutes < 13 else "progressing", 3)]
    assert is_safe(rig)


@pytest.mark.parametrize("minutes", SLOWLY)
@in_a_fork
def test_a_lowered_quota_that_settles_slowly_keeps_what_needs_it_waiting(rig: Rig, minutes: int) -> None:
    rig.settle_slowly("alpha", minutes * 60)
    rig.change(10 * 60 if minutes > 13 else 4 * 60)
    assert "gamma" not in dict(rig.writes()), "its room is not there yet"
    rig.stack.run_until_quiet(3600)
    rig.resync()
    assert rig.counts() == WANTED
    assert sorted(rig.writes()) == [("alpha", 3), ("beta", 2), ("gamma", 4)], "each is written once"
    assert is_safe(rig)


@in_a_fork
def test_a_quota_that_never_settles_is_left_and_named(rig: Rig) -> None:
    rig.settle_slowly("gamma", 10**7)
    rig.change()
    rig.resync()
    assert rig.records() == [("progressing", 3)]
    assert any("gamma" in error and "Updating" in error for error in rig.errors())
    assert sorted(rig.writes()) == [("alpha", 3), ("beta", 2), ("gamma", 4)]
    assert is_safe(rig)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("ResourceLimitExceeded", "limit-reached"),
        ("ValidationException", "validation"),
        ("ResourceNotFound", "not-found"),
        ("AccessDeniedException", "access-denied"),
    ],
)
@in_a_fork
def test_a_refused_write_is_recorded_and_the_run_ends_unfinished(rig: Rig, code: str, kind: str) -> None:
    gamma = rig.quota_id("gamma")
    rig.stack.faults.fail(
        "sagemaker",
        "UpdateComputeQuota",
        code=code,
        message="not this one",
        times=10**6,
        when=lambda call: call["ComputeQuotaId"] == gamma,
    )
    rig.change()
    (refused,) = rig.items("REFUSED#")
    assert json.loads(refused["record"]["S"])["error"] == kind
    assert rig.records()[0][0] == "unfinished"
    assert f"({kind})" in rig.errors()[-1]
    assert "gamma" in rig.errors()[-1]
    assert is_safe(rig)


@pytest.mark.parametrize("seconds", [5, 15, 60, 300])
@in_a_fork
def test_lists_that_are_late_change_nothing(rig: Rig, seconds: float) -> None:
    rig.governance.late_seconds = seconds
    rig.change()
    rig.resync()
    assert rig.counts() == WANTED
    assert sorted(rig.writes()) == [("alpha", 3), ("beta", 2), ("gamma", 4)], "each is written once"
    assert rig.records() == [("applied", 3)]
    assert is_safe(rig)


@in_a_fork
def test_throttled_writes_slow_a_run_down_and_do_not_fail_it(rig: Rig) -> None:
    """Of ten tries nine are throttled: more than a client tries again, so that calls of the function fail too."""
    tries = itertools.count(1)
    rig.stack.faults.fail(
        "sagemaker",
        "UpdateComputeQuota",
        code="ThrottlingException",
        message="Rate exceeded",
        times=10**6,
        when=lambda _: next(tries) % 10 != 0,
    )
    before = len(rig.stack.results)
    rig.change()
    assert rig.counts() == WANTED
    assert sorted(rig.writes()) == [("alpha", 3), ("beta", 2), ("gamma", 4)], "each is written once"
    assert rig.records() == [("applied", 3)]
    assert rig.failed_executions() == []
    assert is_safe(rig)
    failed = [result for result in rig.stack.results[before:] if result.is_error]
    assert len(failed) >= 3
    assert {result.function for result in failed} == {"ApplyChangeFunction"}
    assert next(tries) > 27


@in_a_fork
def test_what_a_call_wrote_before_it_died_is_on_record(rig: Rig) -> None:
    """The record of a write cannot be kept any more: the announcement and the service tell that it was made."""
    crash = Fault("sagemaker", "UpdateComputeQuota", "raise_after", 1, error=FunctionCrash)
    rig.stack.faults._add(crash)
    applying = rig.stack.physical("ApplyChangeFunction")
    down = Fault("lambda", "Invoke", "fail", 40, "ServiceException", status=500)
    down.when = lambda call: applying in call["FunctionName"] and bool(rig.writes())
    rig.stack.faults._add(down)
    rig.change(240)
    assert rig.records()[0] == ("unfinished", 1)
    rig.stack.run_until_quiet(3600)
    rig.resync()
    assert rig.counts() == WANTED
    assert is_safe(rig)
