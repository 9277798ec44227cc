"""The doctor says which release is deployed, in which mode, and whether somebody changed its resources by hand."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from taskgov_cli.doctor.checks_account import OUTPUTS, stack_deployed, subscriptions
from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.doctor.facts import DeployedStack, Names, Subscription
from tests.template.conftest import load

ROOT = Path(__file__).parents[2]
OWN = metadata.version("taskgov")
NAMES = Names("ml-cluster", "gov")


def stack(release: str = OWN, mode: str = "apply", drift: str = "IN_SYNC") -> DeployedStack:
    outputs = dict.fromkeys(OUTPUTS, "x") | {"Release": release, "ApplyMode": mode}
    return DeployedStack("gov", "UPDATE_COMPLETE", outputs, {}, drift)


@pytest.mark.parametrize(
    ("deployed", "status", "said"),
    [
        (stack(), Status.OK, f"stack gov is UPDATE_COMPLETE: release {OWN}, ApplyMode apply, no drift"),
        (stack(mode="plan", drift="NOT_CHECKED"), Status.OK, "ApplyMode plan, drift not checked"),
        (stack(drift="DRIFTED"), Status.WARNING, "resources were changed outside CloudFormation"),
        (stack(release="0.0.9"), Status.WARNING, f"release 0.0.9, ApplyMode apply; this command is of release {OWN}"),
    ],
    ids=["in sync", "not checked", "drifted", "another release"],
)
def test_release_mode_and_drift(deployed: DeployedStack, status: Status, said: str) -> None:
    found = stack_deployed(deployed, NAMES)
    assert found.status is status
    assert said in found.because


def test_a_stack_of_before_says_what_it_does_not_tell() -> None:
    before = DeployedStack("gov", "CREATE_COMPLETE", dict.fromkeys(OUTPUTS, "x"), {})
    assert "release unknown, ApplyMode unknown" in stack_deployed(before, NAMES).because


def test_the_template_gives_the_release_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert load().cfn["Outputs"]["Release"]["Value"] == project["version"]


def test_a_subscription_that_nobody_confirmed_is_asked_for_once_more_by_its_own_protocol() -> None:
    names = Names("ml-cluster", "gov", outputs={"NoticeTopicArn": "arn:aws:sns:us-east-1:111122223333:notices"})
    found = subscriptions((Subscription("https", "https://ops.example.com", confirmed=False),), names)
    (command,) = found.fix
    assert command.endswith(":notices --protocol https --notification-endpoint https://ops.example.com")
