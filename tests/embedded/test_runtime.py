"""Functions see what Lambda shows them, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import sys
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import boto3
import pytest

from taskgov_embedded.aws_api.faults import Fault, FunctionCrash
from taskgov_embedded.iam import evaluation
from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

EVERYTHING = evaluation.statements("any", "all", {"Statement": {"Effect": "Allow", "Action": "*", "Resource": "*"}})


@pytest.fixture
def with_code(app: Path, tmp_path: Path) -> Iterator[Callable[[str], Stack]]:
    """Open a stack whose audit function has this code."""
    opened: list[Stack] = []

    def open_with(code: str) -> Stack:
        shutil.copytree(app.parent, tmp_path / "app")
        (tmp_path / "app" / "functions" / "audit" / "app.py").write_text(code)
        opened.append(Stack(tmp_path / "app" / "template.yaml").open())
        return opened[0]

    yield open_with
    for stack in opened:
        stack.close()


def test_a_function_sees_its_own_variables_and_no_others(with_code: Callable[[str], Stack]) -> None:
    stack = with_code("import os\ndef handler(event, context):\n    return dict(os.environ)\n")
    seen = stack.invoke("AuditFunction", {}).value
    declared = {"TABLE_NAME", "POWERTOOLS_SERVICE_NAME", "POWERTOOLS_METRICS_NAMESPACE", "LIMIT"}
    assert {name for name in seen if not name.startswith("AWS_")} - declared == {"_HANDLER", "TZ", "LANG", "PATH"}
    assert seen["TABLE_NAME"] == stack.physical("Table")
    assert seen["LIMIT"] == "3"
    assert seen["AWS_LAMBDA_FUNCTION_NAME"] == stack.physical("AuditFunction")
    assert seen["AWS_REGION"] == "us-east-1"
    assert "MOTO_ACCOUNT_ID" not in seen
    assert "HOME" not in seen


def test_an_undeclared_variable_is_a_key_error(stack: Stack) -> None:
    result = stack.invoke("WorkFunction", {"name": "x", "part": "undeclared", "note": ""})
    assert result.is_error
    assert result.value["errorType"] == "KeyError"
    assert "STATE_MACHINE_ARN" in result.value["errorMessage"]


def test_what_a_function_sets_stays_in_it(with_code: Callable[[str], Stack]) -> None:
    stack = with_code(
        "import os\ndef handler(event, context):\n"
        "    before = os.getenv('MARK')\n    os.environ['MARK'] = 'x'\n    return before\n"
    )
    assert [stack.invoke("AuditFunction", {}).value for _ in range(2)] == [None, "x"]
    assert "MARK" not in os.environ


def test_functions_have_modules_of_their_own_even_of_the_same_name(stack: Stack) -> None:
    stack.bus.publish("fixture", "Change", {"name": "one", "parts": ["a"]})
    stack.run_until_quiet()
    assert [one.is_error for one in stack.results] == [False, False]
    work = next(one for one in stack.results if one.function == "WorkFunction")
    assert work.value["by"] == stack.physical("WorkFunction")  # the layer's cache is each function's own
    assert not {"app", "rules", "shared_code"} & set(sys.modules)


def test_a_function_that_invokes_another_keeps_its_own_modules(with_code: Callable[[str], Stack]) -> None:
    stack = with_code(
        "import json, os, boto3\n"
        "def handler(event, context):\n"
        "    answer = boto3.client('lambda').invoke(FunctionName=event['next'], Payload=json.dumps(event['payload']))\n"
        "    import app\n"
        "    by = json.load(answer['Payload'])['by']\n"
        "    return [app.handler is handler, by, os.environ['AWS_LAMBDA_FUNCTION_NAME']]\n"
    )
    denied = stack.invoke("AuditFunction", {"next": stack.physical("WorkFunction"), "payload": {}})
    assert "not authorized to perform: lambda:InvokeFunction" in denied.value["errorMessage"]
    stack.faults.delay("lambda", "Invoke", seconds=3)
    stack.account.requests._policies = lambda _role: EVERYTHING
    payload = {"name": "x", "part": "slow", "note": ""}
    result = stack.invoke("AuditFunction", {"next": stack.physical("WorkFunction"), "payload": payload})
    assert result.value == [True, stack.physical("WorkFunction"), stack.physical("AuditFunction")]


def test_a_shared_package_is_one_for_all_functions(app: Path) -> None:
    with Stack(app, shared_packages=("shared_code",)) as stack:
        stack.bus.publish("fixture", "Change", {"nameless": True})  # makes the first function ask for its name
        stack.run_until_quiet()
        work = stack.invoke("WorkFunction", {"name": "x", "part": "a", "note": ""})
        assert work.value["by"] == stack.physical("ReceiveFunction")
    sys.modules.pop("shared_code")


def test_a_module_stays_warm_between_invocations(stack: Stack) -> None:
    tries = [stack.invoke("WorkFunction", {"name": "x", "part": "busy", "note": ""}).is_error for _ in range(3)]
    assert tries == [True, True, False]


def test_calls_are_signed_with_the_functions_role(with_code: Callable[[str], Stack]) -> None:
    stack = with_code(
        "import boto3\ndef handler(event, context):\n    return boto3.client('sts').get_caller_identity()['Arn']\n"
    )
    arn = stack.invoke("AuditFunction", {}).value
    assert arn.startswith("arn:aws:sts::111122223333:assumed-role/taskgov-AuditFunctionRole-")
    assert boto3.client("sts").get_caller_identity()["Arn"].endswith("user/operator")


def test_a_function_that_crashes_at_a_call_starts_cold_and_catches_nothing(with_code: Callable[[str], Stack]) -> None:
    stack = with_code(
        "import boto3\ncount = 0\ndef handler(event, context):\n    global count\n    count += 1\n"
        "    try:\n        boto3.client('sts').get_caller_identity()\n    except Exception:\n        return 'caught'\n"
        "    return count\n"
    )
    assert stack.invoke("AuditFunction", {}).value == 1
    crash = [Fault("sts", "GetCallerIdentity", "raise", 1, error=FunctionCrash)]
    stack.faults.chooser = lambda *_call: crash.pop() if crash else None
    assert stack.invoke("AuditFunction", {}).value["errorType"] == "Runtime.ExitError"
    assert stack.invoke("AuditFunction", {}).value == 1


def test_threads_of_a_handler_belong_to_it(with_code: Callable[[str], Stack]) -> None:
    stack = with_code(
        "import os\nfrom concurrent.futures import ThreadPoolExecutor\n"
        "def handler(event, context):\n"
        "    with ThreadPoolExecutor(2) as pool:\n"
        "        return list(pool.map(lambda name: os.environ[name], ['TABLE_NAME', 'AWS_LAMBDA_FUNCTION_NAME']))\n"
    )
    assert stack.invoke("AuditFunction", {}).value == [stack.physical("Table"), stack.physical("AuditFunction")]


def test_the_context_has_the_deadline_on_the_virtual_clock(with_code: Callable[[str], Stack]) -> None:
    stack = with_code(
        "import time\ndef handler(event, context):\n    before = context.get_remaining_time_in_millis()\n"
        "    time.sleep(10)\n    return [before, context.get_remaining_time_in_millis(), context.function_name]\n"
    )
    assert stack.invoke("AuditFunction", {}).value == [30000, 20000, stack.physical("AuditFunction")]


def test_a_function_that_takes_too_long_times_out(with_code: Callable[[str], Stack]) -> None:
    stack = with_code("import time\ndef handler(event, context):\n    time.sleep(31)\n")
    start = stack.clock.now
    result = stack.invoke("AuditFunction", {})
    assert (result.is_error, result.value["errorType"]) == (True, "Sandbox.Timedout")
    assert stack.clock.now - start == timedelta(seconds=31)


def test_a_result_that_is_not_json_is_the_functions_error(with_code: Callable[[str], Stack]) -> None:
    stack = with_code("def handler(event, context):\n    return {1, 2}\n")
    assert stack.invoke("AuditFunction", {}).value["errorType"] == "TypeError"


def test_a_function_that_cannot_be_imported_fails_each_time(with_code: Callable[[str], Stack]) -> None:
    stack = with_code("import nothing_of_this_name\n")
    for _ in range(2):
        assert stack.invoke("AuditFunction", {}).value["errorType"] == "ModuleNotFoundError"


def test_output_goes_to_the_log_group(stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
    stack.invoke("AuditFunction", {"at": "noon"})
    assert stack.logs("AuditFunction") == ["audit at noon"]
    group = f"/aws/lambda/{stack.physical('AuditFunction')}"
    events = stack.client("logs").filter_log_events(logGroupName=group)["events"]
    assert [one["message"] for one in events] == ["audit at noon"]
    assert events[0]["timestamp"] == int(stack.clock.now.timestamp() * 1000)
    assert "audit" not in capsys.readouterr().out


def test_embedded_metrics_are_read_back_from_cloudwatch(stack: Stack) -> None:
    stack.advance(120, [])
    stack.invoke("WorkFunction", {"name": "x", "part": "a", "note": ""})
    cloudwatch = stack.client("cloudwatch")
    (metric,) = cloudwatch.list_metrics(Namespace="Fixture", MetricName="Worked")["Metrics"]
    dimensions = {one["Name"]: one["Value"] for one in metric["Dimensions"]}
    assert dimensions == {"Part": "a", "service": "fixture"}
    query = {"Id": "q", "MetricStat": {"Metric": metric, "Period": 60, "Stat": "Sum"}}
    span = {"StartTime": stack.clock.now - timedelta(minutes=5), "EndTime": stack.clock.now + timedelta(minutes=5)}
    (series,) = cloudwatch.get_metric_data(MetricDataQueries=[query], **span)["MetricDataResults"]
    assert series["Values"] == [1.0]
    assert series["Timestamps"] == [stack.clock.now]


def test_an_asynchronous_event_is_tried_three_times(with_code: Callable[[str], Stack]) -> None:
    stack = with_code("def handler(event, context):\n    raise ValueError(event)\n")
    start = stack.clock.now
    stack.client("lambda").invoke(FunctionName=stack.physical("AuditFunction"), InvocationType="Event", Payload=b'"x"')
    stack.run_until_quiet()
    assert len(stack.results) == 3
    assert stack.clock.now - start == timedelta(seconds=180)


def test_an_invocation_over_the_api_answers_as_lambda_does(stack: Stack) -> None:
    client = stack.client("lambda")
    good = client.invoke(FunctionName=stack.physical("AuditFunction"), Payload=json.dumps({"at": "x"}))
    assert (good["StatusCode"], json.load(good["Payload"])) == (200, {"at": "x"})
    bad = client.invoke(FunctionName=stack.physical("AuditFunction"), Payload=b"{}")
    assert bad["FunctionError"] == "Unhandled"
    assert json.load(bad["Payload"])["errorType"] == "KeyError"
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.invoke(FunctionName="nobody")


def test_a_warning_is_a_line_in_the_log(with_code: Callable[[str], Stack]) -> None:
    stack = with_code("import warnings\ndef handler(event, context):\n    warnings.warn('careful')\n")
    assert not stack.invoke("AuditFunction", {}).is_error
    assert any("UserWarning: careful" in line for line in stack.logs("AuditFunction"))


def test_the_process_is_as_before_when_the_stack_is_closed(app: Path) -> None:
    def now() -> list[Any]:
        return [os.environ, sys.stdout, boto3._get_default_session, threading.Thread.start, time.sleep, [*sys.path]]

    before = now()
    with Stack(app) as stack:
        stack.invoke("AuditFunction", {"at": "x"})
    assert now() == before
    assert time.time() != stack.clock.now.timestamp()


def test_a_role_can_be_lent(stack: Stack) -> None:
    arn = stack.resolved("Machine").properties["RoleArn"]
    lent = stack.client("sts").assume_role(RoleArn=arn, RoleSessionName="me")["Credentials"]
    client = boto3.client(
        "sts",
        aws_access_key_id=lent["AccessKeyId"],
        aws_secret_access_key=lent["SecretAccessKey"],
        aws_session_token=lent["SessionToken"],
    )
    assert client.get_caller_identity()["Arn"].endswith("/me")
