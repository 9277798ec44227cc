"""Which answers must the functions give in containers? `python -m tests.local_invoke` asks for them, one by one."""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from tests.local_invoke import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

ENVIRONMENT = tools.ROOT / "events" / "env.json"
PLAN = tools.ROOT / "events" / "local" / "plan.json"


@dataclass(frozen=True, slots=True)
class Trial:
    """A function, its sample, and what must be true of the answer."""

    function: str
    sample: str
    holds: Callable[[Any], bool]


def _changes() -> int:
    return len(json.loads(PLAN.read_text())["changes"])


TRIALS = (
    Trial("PlanQuotasFunction", "plan_quotas", lambda a: a["outcome"] == "planned" and a["changeCount"] == _changes()),
    Trial("ReadSnapshotFunction", "read_snapshot", lambda a: a["clusterName"] == "ml-cluster" and a["generation"] > 0),
    Trial("VerifyPlanFunction", "verify_plan", lambda a: a["settled"] and len(a["problems"]) == 1),
    Trial("ApplyChangeFunction", "apply_change", lambda a: (a["next"], a["written"]) == (1, 1)),
    # Step Functions may call twice for one change: the second call finds the work done.
    Trial("ApplyChangeFunction", "apply_change", lambda a: (a["next"], a["written"]) == (1, 1)),
    Trial("VerifyPlanFunction", "verify_plan", lambda a: not a["problems"] and not a["refused"]),
    Trial("PublishUsageFunction", "publish_usage", lambda a: a["published"] > 0),
    Trial("PublishUsageFunction", "publish_usage.all", lambda a: a["published"] > 0),
    Trial("EstimateStartsFunction", "estimate_starts", lambda a: a["unreadable"] == 0 and "estimated" in a),
    Trial("AuditClusterFunction", "audit_cluster", lambda a: a["clusterName"] == "ml-cluster" and a["report"]["html"]),
    Trial("TakeOrderFunction", "take_order", lambda a: a["statusCode"] == 200),
    Trial("ReceiveEventFunction", "receive_event.sqs", lambda a: a == {"batchItemFailures": []}),
)
"""In this order: each finds what those before it have left."""


def main() -> int:
    """Run everything; return the exit code."""
    missing = tools.what_is_missing()
    if missing is not None:
        print(f"SKIPPED: {missing}")
        return 0
    print("sam build ...", flush=True)
    tools.build()
    with TemporaryDirectory() as scratch, tools.local_account() as account:
        variables = _variables(account, Path(scratch))
        failed = [trial for trial in TRIALS if not _passes(trial, account["functions"], variables)]
        wrong = len(failed)
        wrong += not _start_lambda_answers(account["functions"], variables)
        wrong += not _finds_the_layers_boto3(Path(scratch))
    asked = len(TRIALS) + 2
    print(f"local invoke: {asked - wrong} of {asked} answers as expected")
    return 1 if wrong else 0


def _variables(account: Mapping[str, Any], scratch: Path) -> Path:
    """Return the file in the repository, or one for an endpoint elsewhere (another bridge, no bridge at all)."""
    here = {name: function["environment"] for name, function in account["functions"].items()}
    if json.loads(ENVIRONMENT.read_text()) == here:
        return ENVIRONMENT
    print(f"the endpoint is {account['awsEndpoint']}: events/env.json is for another one and not used")
    (scratch / "env.json").write_text(json.dumps(here))
    return scratch / "env.json"


def _passes(trial: Trial, functions: Mapping[str, Any], variables: Path) -> bool:
    began = time.monotonic()
    answer = tools.invoke(trial.function, trial.sample, functions[trial.function], variables)
    passed = "errorType" not in answer and bool(trial.holds(answer))
    _say(passed, f"{trial.function} < {trial.sample}", answer, began)
    return passed


def _start_lambda_answers(functions: Mapping[str, Any], variables: Path) -> bool:
    """Invoke the planning function through `sam local start-lambda`, by the AWS CLI where there is one."""
    began, trial, port = time.monotonic(), TRIALS[0], tools.free_port()
    aws = shutil.which("aws")
    with tools.start_lambda(functions[trial.function], variables, port):
        answer = _by_boto3(trial, port) if aws is None else _by_command_line(aws, trial, port)
    passed = bool(answer) and "errorType" not in answer and bool(trial.holds(answer))
    client = "boto3, since there is no AWS CLI" if aws is None else "the AWS CLI"
    _say(passed, f"start-lambda, asked by {client}: {trial.function} < {trial.sample}", answer, began)
    return passed


def _finds_the_layers_boto3(scratch: Path) -> bool:
    began = time.monotonic()
    found = tools.boto3_beside_an_older_one(scratch)
    passed = found.split() == ["/opt/python/boto3/__init__.py", boto3.__version__, "/opt/python/botocore/__init__.py"]
    _say(passed, f"boto3 with {tools.OLDER_BOTO3} in the runtime", found, began)
    return passed


def _by_command_line(aws: str, trial: Trial, port: int) -> dict[str, Any]:
    """Type what `docs/local.md` says."""
    with TemporaryDirectory() as scratch:
        answer = Path(scratch) / "answer.json"
        command = [aws, "lambda", "invoke", "--function-name", trial.function]
        command += ["--payload", f"fileb://events/{trial.sample}.json", "--endpoint-url", f"http://127.0.0.1:{port}"]
        deadline = time.monotonic() + tools.START_SECONDS
        while True:
            done = tools.run([*command, str(answer)])
            if done.returncode == 0:
                return dict(json.loads(answer.read_text()))
            if time.monotonic() > deadline:
                return {"errorType": "NoAnswer", "errorMessage": done.stderr[-2000:]}
            time.sleep(0.5)


def _by_boto3(trial: Trial, port: int) -> dict[str, Any]:
    client = boto3.client(
        "lambda",
        region_name="us-east-1",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id="anybody",
        aws_secret_access_key="any",
        config=Config(retries={"total_max_attempts": 1}),
    )
    event = (tools.ROOT / "events" / f"{trial.sample}.json").read_bytes()
    deadline = time.monotonic() + tools.START_SECONDS
    while True:
        try:
            answered = client.invoke(FunctionName=trial.function, Payload=event)["Payload"].read()
            return dict(json.loads(answered))
        except BotoCoreError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


def _say(passed: bool, what: str, answer: object, began: float) -> None:
    shown = json.dumps(answer)
    print(
        f"{'ok  ' if passed else 'FAIL'} {what} ({time.monotonic() - began:.1f} s)\n       {shown[:1500]}", flush=True
    )
