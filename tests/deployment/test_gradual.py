"""A new version gets a part of the calls first, and goes back by itself when its alarm rings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskgov_embedded.cloudwatch.alarms import TIMER
from taskgov_embedded.stack import Stack
from tests.deployment.releases import TEMPLATE, older_release

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskgov_embedded.timeline import Moment

pytestmark = pytest.mark.long

GRADUAL = {"DeploymentPreference": "Canary10Percent5Minutes"}
ALARM = "NewVersionErrorsAlarm"


class Deployed:
    """The older release, and three deployments over it: one is stopped, one succeeds, one is not watched."""

    def __init__(self, stack: Stack, older: Path) -> None:
        self.stack, self.older = stack, older
        self.alarms = self.names("AWS::CloudWatch::Alarm")
        self.stopped = self.deploy(TEMPLATE, rings=True)
        self.alarms_after_stop = self.names("AWS::CloudWatch::Alarm")
        self.versions_after_stop = self.versions()
        self.used_after_stop = self.publish()
        stack.advance(60, schedules=[TIMER])  # a state that was set lasts until the alarm is evaluated
        self.moves = len(stack.timeline.of("deployment"))
        self.began = stack.clock.now
        self.succeeded = self.deploy(TEMPLATE, rings=False)
        self.moves_of_success = stack.timeline.of("deployment")[self.moves :]
        self.versions_after_success = self.versions()
        self.used_after_success = self.publish()
        self.unwatched = self.deploy(older, rings=True, RollbackOnAlarms="no")

    def deploy(self, template: Path, *, rings: bool, **parameters: str) -> str | None:
        """Deploy; an alarm rings in the third function's five minutes (none is evaluated while a deployment waits)."""
        if rings:
            ring = {"AlarmName": self.stack.physical(ALARM), "StateValue": "ALARM", "StateReason": "errors"}
            self.stack.clock.after(700, lambda: self.stack.client("cloudwatch").set_alarm_state(**ring))
        return self.stack.update(template, GRADUAL | parameters)

    def names(self, kind: str) -> set[str]:
        return {one.logical_id for one in self.stack.account.resources.of(kind)}

    def versions(self) -> dict[str, str]:
        client = self.stack.client("lambda")
        return {
            one: client.get_alias(FunctionName=self.stack.physical(one), Name="live")["FunctionVersion"]
            for one in self.names("AWS::Lambda::Function")
        }

    def publish(self) -> list[str]:
        """Fire the schedule; return the versions that answered."""
        before = len(self.stack.results)
        self.stack.fire("PublishUsageSchedule")
        self.stack.run_until_quiet()
        return [one.version for one in self.stack.results[before:]]

    def of(self, alias: str) -> list[Moment]:
        return [one for one in self.moves_of_success if one.what.startswith(f"{alias}:")]


@pytest.fixture(scope="module")
def deployed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    older = older_release(tmp_path_factory.mktemp("older"))
    with Stack(older, GRADUAL) as stack:
        yield Deployed(stack, older)


def test_an_alarm_during_the_deployment_takes_everything_back(deployed: Deployed) -> None:
    assert deployed.stopped is not None
    assert ALARM in deployed.stopped
    assert set(deployed.versions_after_stop.values()) == {"1"}
    assert len(deployed.versions_after_stop) == 9
    assert deployed.alarms_after_stop == deployed.alarms
    assert "PublishingStaleAlarm" not in deployed.alarms


def test_after_a_rollback_calls_reach_the_old_version_again(deployed: Deployed) -> None:
    assert deployed.used_after_stop == ["1"]


def test_a_canary_takes_a_tenth_of_the_calls_for_five_minutes_and_then_all(deployed: Deployed) -> None:
    assert deployed.succeeded is None
    first, second = deployed.of("PublishUsageFunctionAliaslive")
    assert first.what.endswith("10% of the calls to version 3")
    assert second.what.endswith(": version 3")
    assert (second.time - first.time).total_seconds() == 300
    assert "1" not in deployed.versions_after_success.values()
    assert deployed.used_after_success == ["3"]  # 2 was the one that went back


def test_without_alarms_a_deployment_stands(deployed: Deployed) -> None:
    assert deployed.unwatched is None
    assert deployed.names("AWS::CloudWatch::Alarm") == deployed.alarms
    assert "OldQueue" in deployed.names("AWS::SQS::Queue")


def test_code_deploy_moves_aliases_with_its_own_role_and_needs_all_that_it_has(deployed: Deployed) -> None:
    role = deployed.stack.resolved("DeploymentRole").physical_id
    used = {grant.action for grant in deployed.stack.requests.grants_used if grant.role.endswith(role)}
    assert used == {
        "lambda:GetAlias",
        "lambda:UpdateAlias",
        "lambda:GetProvisionedConcurrencyConfig",
        "cloudwatch:DescribeAlarms",
    }
    assert deployed.stack.timeline.of("denied") == []
