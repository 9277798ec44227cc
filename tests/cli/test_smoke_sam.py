"""A stack of a smoke test is deployed and deleted with SAM, and only if the run made it."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from taskgov_cli.smoke import sam
from taskgov_cli.smoke.model import StepError
from taskgov_cli.smoke.sam import SamDeployer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EMPTY = '{"Resources": {"Topic": {"Type": "AWS::SNS::Topic"}}}'


@pytest.fixture
def deployer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SamDeployer]:
    """A deployer whose `sam` writes down how it is called."""
    program = tmp_path / "sam"
    program.write_text(f'#!/bin/sh\necho "$* revision=$TASKGOV_REVISION" >> {tmp_path}/calls\nexit ${{SAM_CODE:-0}}\n')
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(sam, "LOOK_SECONDS", 0.01)
    with mock_aws():
        boto3.setup_default_session()
        yield SamDeployer("taskgov-smoke-abcd1234", "abcd1234", tmp_path)


def calls(deployer: SamDeployer) -> list[str]:
    file = deployer.checkout / "calls"
    return file.read_text().splitlines() if file.exists() else []


def stack_of(run_id: str | None, name: str) -> None:
    tags = [] if run_id is None else [{"Key": sam.TAG, "Value": run_id}]
    boto3.client("cloudformation").create_stack(StackName=name, TemplateBody=EMPTY, Tags=tags)  # type: ignore[arg-type]


def test_it_builds_and_deploys_with_a_tag_of_the_run(deployer: SamDeployer) -> None:
    looks: list[int] = []
    deployer.deploy({"ApplyMode": "apply"}, "r2", lambda: looks.append(1))
    build, deploy = calls(deployer)
    assert build == "build --no-cached revision=r2"
    assert deploy.startswith("deploy --stack-name taskgov-smoke-abcd1234 --resolve-s3 ")
    assert "--no-confirm-changeset" in deploy
    assert "--tags taskgov:smoke=abcd1234 --parameter-overrides ApplyMode=apply" in deploy
    assert looks


def test_what_sam_refuses_is_reported_with_its_last_words(
    deployer: SamDeployer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SAM_CODE", "3")
    with pytest.raises(StepError, match="sam build ended with 3"):
        deployer.deploy({})


def test_without_sam_it_says_what_to_install(deployer: SamDeployer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(StepError, match="AWS SAM CLI is not installed"):
        deployer.deploy({})


@pytest.mark.parametrize("owner", [None, "other000"])
def test_a_stack_that_the_run_did_not_make_is_neither_deployed_over_nor_deleted(
    deployer: SamDeployer, owner: str | None
) -> None:
    stack_of(owner, deployer.stack)
    with pytest.raises(StepError, match="which this run did not make"):
        deployer.deploy({})
    with pytest.raises(StepError, match="which this run did not make"):
        deployer.delete()
    assert calls(deployer) == []


@pytest.mark.parametrize(
    ("statuses", "want"),
    [
        (("UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"), ["look", "cancelled", "look", "look"]),
        (("CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"), ["look", "look", "look"]),
    ],
    ids=["an update is broken off", "what is being made is waited for"],
)
def test_a_stack_comes_to_rest_before_what_it_retains_is_looked_up(
    deployer: SamDeployer, monkeypatch: pytest.MonkeyPatch, statuses: tuple[str, ...], want: list[str]
) -> None:
    stack_of(deployer.run_id, deployer.stack)
    described, left = deployer._described(), [*statuses, "ROLLBACK_COMPLETE"]
    looks: list[str] = []

    def look(_self: SamDeployer) -> dict[str, Any]:
        looks.append("look")
        return {**described, "StackStatus": left.pop(0)}

    monkeypatch.setattr(SamDeployer, "_described", look)
    monkeypatch.setattr(SamDeployer, "_cancel_update", lambda _self: looks.append("cancelled"))
    deployer.settle()
    assert (looks, left) == (want, [])


def test_the_stack_of_the_run_is_deleted_and_one_that_is_gone_is_let_be(deployer: SamDeployer) -> None:
    deployer.delete()
    assert (calls(deployer), deployer.is_there()) == ([], False)
    stack_of(deployer.run_id, deployer.stack)
    assert deployer.is_there()
    deployer.delete()
    assert calls(deployer) == ["delete --stack-name taskgov-smoke-abcd1234 --no-prompts revision="]
