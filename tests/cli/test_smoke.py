"""`taskgov smoke`: the test of a real account passes on the embedded one, cleans up however it ends, and is careful."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from typer.testing import CliRunner

from taskgov_cli.main import app
from taskgov_cli.smoke import command, embedded, runner, steps_api, steps_quota, steps_stack
from taskgov_cli.smoke.model import Sandbox, StepError, Typed
from taskgov_cli.smoke.steps import STEPS
from tests.allocation.world import quota, row
from tests.support.golden import assert_section
from tests.support.operating import G5, opened, played

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.hyperpod.model import ComputeQuota

PAGE = Path(__file__).parents[2] / "docs" / "smoke.md"


def silent(*_about: object) -> None:
    """Tell nobody."""


SILENT = runner.Telling(silent, silent, silent)


@pytest.mark.long
def test_it_passes_on_the_embedded_account_and_writes_a_report(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    result = CliRunner().invoke(app, ["smoke", "--embedded", "--report", str(file), "--json"])
    assert result.exit_code == 0, result.output
    report = json.loads(file.read_text())
    assert json.loads(result.stdout) == {**report, "report": str(file)}
    results = {step["name"]: step["result"] for step in report["steps"]}
    assert list(results) == [step.name for step in STEPS]
    assert {name for name, came in results.items() if came != "passed"} <= {"preflight"}
    assert (report["passed"], report["left"]) == (True, [])
    assert {found["agrees"] for found in report["inferred"]} == {True}
    assert {event["detail"]["eventName"] for event in report["cloudTrailEvents"]} == {
        "CreateComputeQuota",
        "UpdateComputeQuota",
        "DeleteComputeQuota",
    }
    assert [settled["status"] for settled in report["settled"]] == ["Created", "Updated", "Deleted"]
    assert not [word for word in ("ml-cluster", "ml-eks", "user/operator") if word in file.read_text()]


def broken(_sandbox: Sandbox) -> str:
    raise StepError("it broke")


@pytest.mark.long
def test_nothing_is_left_in_the_account_when_a_step_fails(tmp_path: Path) -> None:
    steps = [replace(step, do=broken) if step.name == "update" else step for step in STEPS]
    with embedded.opened(tmp_path) as deployer:
        by = boto3.client("sts").get_caller_identity()["Account"]
        sandbox = command._sandbox(app, "abcd1234", deployer, str(tmp_path), "ml-cluster", by)
        result = runner.play(steps, sandbox, SILENT)
        world = deployer.world
        results = {came.name: came.result for came in result.steps}
        assert (results["create"], results["update"], results["approval"]) == ("passed", "failed", "not-reached")
        assert (result.passed, result.left) == (False, [])
        assert world.quotas() == {}
        assert boto3.client("sagemaker").list_tags(ResourceArn=world.cluster_arn)["Tags"] == []
        assert world.stack.eks.cluster("ml-eks").entries == {}
        assert boto3.client("events").list_rules()["Rules"] == []
        assert "QueueUrls" not in boto3.client("sqs").list_queues()
        assert boto3.client("dynamodb").list_tables()["TableNames"] == []
        assert [bucket["Name"] for bucket in boto3.client("s3").list_buckets()["Buckets"]] == ["trail"]


def smoke(*words: str) -> Any:
    return CliRunner().invoke(app, ["smoke", *words])


def test_without_a_cluster_and_its_account_it_says_what_to_type() -> None:
    for words in ((), ("ml-cluster",), ("--account", "111122223333")):
        result = smoke(*words)
        assert result.exit_code == 2
        assert "taskgov smoke CLUSTER --account ID" in " ".join(result.output.replace("│", " ").split())


@pytest.mark.parametrize(("given", "why"), [("Nonsense", "NAME=VALUE"), ("ApplyMode=plan", "set by the test itself")])
def test_a_parameter_that_cannot_be_given_is_named(given: str, why: str) -> None:
    result = smoke("ml-cluster", "--account", "111122223333", "--parameter", given)
    assert (result.exit_code, why in result.output) == (2, True)


def test_a_report_that_could_not_be_written_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    result = smoke("ml-cluster", "--account", "111122223333", "--report", str(tmp_path / "nowhere" / "report.json"))
    said = " ".join(result.output.replace("│", " ").split())
    assert (result.exit_code, "the report would be lost" in said) == (2, True)


def test_the_mark_of_another_stack_stays_whatever_fails(tmp_path: Path) -> None:
    """Also when the test could not look at the cluster, and when the mark was made while it ran."""
    tag: Any = {"Key": "taskgov:stack:0123456789ab", "Value": "2026-11-20T09:00:00+00:00"}
    with embedded.opened(tmp_path) as deployer:
        by, arn = boto3.client("sts").get_caller_identity()["Account"], deployer.world.cluster_arn
        sagemaker = boto3.client("sagemaker")

        def marked(_sandbox: Sandbox) -> str:
            sagemaker.add_tags(ResourceArn=arn, Tags=[tag])
            raise StepError("throttled")

        for name in ("look", "listen"):
            sandbox = command._sandbox(app, "abcd1234", deployer, str(tmp_path), "ml-cluster", by)
            steps = [replace(step, do=marked) if step.name == name else step for step in STEPS]
            result = runner.play(steps, sandbox, SILENT)
            assert (result.passed, result.left) == (False, [])
            assert sagemaker.list_tags(ResourceArn=arn)["Tags"] == [tag]
            sagemaker.delete_tags(ResourceArn=arn, TagKeys=[tag["Key"]])


def test_what_a_stack_retains_is_looked_up_once_it_is_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    class Log(list[str]):
        """A deployer of a stack that was interrupted while it was made: its table has no name before it is at rest."""

        stack = "taskgov-smoke-abcd1234"

        def is_there(self) -> bool:
            return True

        def settle(self) -> None:
            self.append("settle")

        def delete(self) -> None:
            self.append("delete")

    log = Log()
    sandbox = sandbox_with("nothing")
    sandbox.deployer = log  # type: ignore[assignment]
    monkeypatch.setattr(steps_stack, "deployed", lambda _stack: None)
    monkeypatch.setattr(steps_stack, "turn", lambda *_about, **_more: None)
    monkeypatch.setattr(steps_stack, "_physical", lambda _sandbox, name: name.lower() if "settle" in log else "")
    monkeypatch.setattr(steps_stack, "_mark", silent)
    for kind in ("table", "bucket"):
        monkeypatch.setattr(steps_stack, f"_delete_{kind}", log.append)
    steps_stack.undeploy(sandbox)
    assert log == ["settle", "delete", "governancetable", "governancebucket"]


def test_a_write_that_is_taken_while_another_settles_is_reported_and_the_probe_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = steps_api._written

    def settled_at_once(sandbox: Sandbox, operation: str, **arguments: Any) -> Any:
        answer = written(sandbox, operation, **arguments)
        time.sleep(10)
        return answer

    monkeypatch.setattr(steps_api, "_written", settled_at_once)
    with embedded.opened(tmp_path) as deployer:
        by = boto3.client("sts").get_caller_identity()["Account"]
        sandbox = command._sandbox(app, "abcd1234", deployer, str(tmp_path), "ml-cluster", by)
        sandbox.instance_type = G5
        steps_api.probe(sandbox)
        assert [found.name for found in sandbox.observed.inferred if not found.agrees] == ["STILL_SETTLING"]


def test_without_the_event_of_a_write_that_was_taken_the_form_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = sandbox_with("nothing")
    names = ("CreateComputeQuota", "UpdateComputeQuota", "DeleteComputeQuota")
    sandbox.observed.events = [{"detail": {"eventName": name, "errorCode": "ConflictException"}} for name in names]
    monkeypatch.setattr(steps_api, "_take_messages", silent)
    monkeypatch.setattr(steps_api, "TRAIL_SECONDS", 0)
    with pytest.raises(
        StepError, match="no event arrived for CreateComputeQuota, DeleteComputeQuota, UpdateComputeQuota"
    ):
        steps_api.trail(sandbox)
    assert [found.agrees for found in sandbox.observed.inferred] == [False]


def test_outside_a_checkout_there_is_nothing_to_deploy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = smoke("ml-cluster", "--account", "111122223333")
    assert (result.exit_code, "there is no template.yaml" in result.output) == (2, True)


def test_another_account_a_cluster_that_is_not_there_and_one_that_is_governed_are_refused(tmp_path: Path) -> None:
    report = ("--report", str(tmp_path / "report.json"))
    with opened({"waitMinutes": 1}) as world:
        played(world)
        before = len(world.stack.calls)
        other = smoke("ml-cluster", "--account", "444455556666", *report)
        assert (other.exit_code, "not of" in other.output) == (1, True)
        missing = smoke("no-cluster", "--account", "111122223333", *report)
        assert (missing.exit_code, "has no HyperPod cluster no-cluster" in missing.output) == (1, True)
        tag: Any = {"Key": "taskgov:stack:0123456789ab", "Value": "2026-11-20T09:00:00+00:00"}
        boto3.client("sagemaker").add_tags(ResourceArn=world.cluster_arn, Tags=[tag])
        marked = smoke("ml-cluster", "--account", "111122223333", *report)
        assert (marked.exit_code, "another stack of taskgov has tagged the cluster" in marked.output) == (1, True)
        assert boto3.client("sagemaker").list_tags(ResourceArn=world.cluster_arn)["Tags"] == [tag]
        writes = [call.operation for call in world.stack.calls[before:] if not call.operation.startswith(READS)]
        assert writes == ["AddTags"]


READS = ("Get", "List", "Describe")


NODES = [{"InstanceType": G5, "InstanceStatus": {"Status": "Running"}}] * 4
FREE: dict[str, tuple[list[dict[str, Any]], list[ComputeQuota], dict[str, int]]] = {
    "nothing is promised": (NODES, [], {G5: 4}),
    "one is promised": (NODES, [quota("a", row(Count=1))], {G5: 3}),
    "more than there are": (NODES, [quota("a", row(Count=9))], {G5: 0}),
    "a part of one is promised": (NODES, [quota("a", row(Accelerators=1))], {G5: 0}),
    "of another type": (NODES, [quota("a", row("ml.g5.xlarge", Count=3))], {G5: 4}),
    "machines without accelerators": ([{**NODES[0], "InstanceType": "ml.m5.large"}], [], {}),
    "a machine that does not run": ([{**NODES[0], "InstanceStatus": {"Status": "Pending"}}], [], {}),
}


@pytest.mark.parametrize(("nodes", "quotas", "want"), FREE.values(), ids=FREE)
def test_instances_that_a_quota_promises_are_not_free(
    nodes: list[dict[str, Any]], quotas: list[ComputeQuota], want: dict[str, int]
) -> None:
    assert steps_quota.free_instances(nodes, quotas) == want


TYPED: list[tuple[str, ...]] = []
APPLY = ("-p", "ApplyMode=apply", "-p", "PublishSchedule=rate(1 hour)")


def sandbox_with(command: str, code: int = 0, output: str = "") -> Sandbox:
    def type_(words: Sequence[str]) -> Typed:
        assert words[0] == command
        TYPED.append(tuple(words))
        return Typed(code, output)

    none: Any = None
    place: dict[str, Any] = {
        "account": "",
        "cluster": "c",
        "cluster_arn": "",
        "eks": "",
        "instance_type": "",
        "folder": "",
    }
    return Sandbox(run_id="abcd1234", deployer=none, type_=type_, **place)


def test_preflight_is_asked_with_the_parameters_of_the_stack() -> None:
    sandbox = sandbox_with("preflight")
    sandbox.parameters = {"OrdersThrough": "api-gateway"}
    assert steps_stack.preflight(sandbox) == "exit code 0"
    assert TYPED[-1] == ("preflight", *APPLY, "-p", "OrdersThrough=api-gateway", "--json")
    with pytest.raises(StepError, match="exit code 1: too few functions"):
        steps_stack.preflight(sandbox_with("preflight", code=1, output="too few\nfunctions"))


def test_the_page_shows_the_steps_in_their_order() -> None:
    rows = ["| step | expects that | undoes |", "| --- | --- | --- |"]
    rows += [f"| `{step.name}` | {step.expects} | {step.cleans} |" for step in STEPS]
    assert_section(PAGE, "steps", "\n".join(rows))


def test_each_step_that_makes_something_says_what_it_removes() -> None:
    assert all(bool(step.cleans) == (step.clean_up is not None) for step in STEPS)
    assert len({step.name for step in STEPS}) == len(STEPS)
