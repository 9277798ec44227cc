"""Do what a Task state requests, with the role of its state machine: a call of a service, by way of boto3.

Optimized integrations have parameters, results and names of errors of their own; an `aws-sdk` task has the service's.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from botocore import xform_name
from botocore.exceptions import BotoCoreError, ClientError

from taskgov_embedded.stepfunctions.expressions import with_times_as_text
from taskgov_embedded.stepfunctions.host import TaskFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.aws_api.clients import Clients
    from taskgov_embedded.stepfunctions.host import Task

SDK = "aws-sdk"
OPTIMIZED: Mapping[str, frozenset[str]] = {
    "lambda": frozenset({"invoke"}),
    "dynamodb": frozenset({"getItem", "putItem", "updateItem", "deleteItem"}),
    "sqs": frozenset({"sendMessage"}),
    "sns": frozenset({"publish"}),
}
"""The optimized integrations that are here; `definitions` refuses any other."""

_BOTO_NAMES = {"sfn": "stepfunctions", "eventbridge": "events"}
"""SDK services that boto3 names otherwise."""
_ERROR_NAMES = {
    "sagemaker": "SageMaker",
    "dynamodb": "DynamoDb",
    "eventbridge": "EventBridge",
    "cloudwatch": "CloudWatch",
}
"""How an error of an SDK task names its service, where that is not the capitalized word."""
_IN_CAUSE = {"lambda": "AWSLambda", "dynamodb": "AmazonDynamoDBv2", "sns": "AmazonSNS"}
_OF_INVOKE = ("ExecutedVersion", "FunctionError", "LogResult", "StatusCode")


def work(task: Task, clients: Clients, role_arn: str) -> Any:
    """Make the call of a task and return its result. Raises TaskFailedError."""
    kind, action = task.about["resourceType"], task.about["resource"].partition(".")[0]
    service = kind.removeprefix(f"{SDK}:")
    client = clients.of_role(_BOTO_NAMES.get(service, service), role_arn, "stepfunctions", validate=False)
    call: Callable[..., dict[str, Any]] = getattr(client, xform_name(action))
    given = _parameters(kind, task.arguments)
    if kind != service:
        given = _as_the_service_names_them(given, client.meta, action)
    try:
        answer = call(**given)
    except (ClientError, BotoCoreError) as error:
        raise (_sdk_failure if kind != service else _failure)(service, error) from error
    answer.pop("ResponseMetadata", None)
    return _invoked(answer) if kind == "lambda" else with_times_as_text(answer)


def _parameters(kind: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return what an integration sends: data where the service takes text is written as JSON."""
    given = dict(arguments)
    text = {"lambda": "Payload", "sqs": "MessageBody", "sns": "Message"}.get(kind)
    if text in given and not _is_sent_as_it_is(kind, given[text]):
        given[text] = json.dumps(given[text])
    return given


def _as_the_service_names_them(given: Mapping[str, Any], meta: Any, action: str) -> dict[str, Any]:
    """Return the parameters of an SDK task, which are in PascalCase for any service (Developer Guide)."""
    shape = meta.service_model.operation_model(meta.method_to_api_mapping[xform_name(action)]).input_shape
    own = {name[0].upper() + name[1:]: name for name in shape.members}
    return {own.get(name, name): value for name, value in given.items()}


def _is_sent_as_it_is(kind: str, value: Any) -> bool:
    """Return whether a value is text of its own: for a function only when it is JSON already."""
    if kind != "lambda" or not isinstance(value, str):
        return isinstance(value, str)
    try:
        json.loads(value)
    except json.JSONDecodeError:
        return False
    return True


def _invoked(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the result of an invocation; a function's error has the name of its class. Raises TaskFailedError."""
    payload = json.loads(answer["Payload"].read() or b"null")
    if answer.get("FunctionError"):
        error = payload.get("errorType", "Exception") if isinstance(payload, dict) else "Exception"
        raise TaskFailedError(error, json.dumps(payload, separators=(",", ":")))
    return {name: answer[name] for name in _OF_INVOKE if name in answer} | {"Payload": payload}


def _failure(service: str, error: ClientError | BotoCoreError) -> TaskFailedError:
    """Name an error of an optimized integration."""
    if not isinstance(error, ClientError):
        unnamed = {"lambda": "Lambda.SdkClientException", "dynamodb": "DynamoDB.AmazonDynamoDBException"}
        return TaskFailedError(unnamed.get(service, f"{service.upper()}.SdkClientException"), str(error))
    code, message = error.response["Error"]["Code"], error.response["Error"]["Message"]
    if service == "sqs":
        return TaskFailedError("SQS.SdkClientException", message)
    names = {"lambda": f"Lambda.{code}", "dynamodb": f"DynamoDB.{code}", "sns": f"SNS.{_exception(code)}"}
    about = error.response["ResponseMetadata"]
    cause = (
        f"{message} (Service: {_IN_CAUSE[service]}; Status Code: {about['HTTPStatusCode']}; Error Code: {code}; "
        f"Request ID: {about['RequestId']}; Proxy: null)"
    )
    return TaskFailedError(names[service], cause)


def _sdk_failure(service: str, error: ClientError | BotoCoreError) -> TaskFailedError:
    """Name an error of an SDK task: the service and the exception's class, or the service twice for any other."""
    name = _ERROR_NAMES.get(service, service.capitalize())
    if not isinstance(error, ClientError):
        return TaskFailedError(f"{name}.SdkClientException", str(error))
    kind = type(error).__name__
    about = error.response["ResponseMetadata"]
    cause = (
        f"{error.response['Error']['Message']} (Service: {name}, Status Code: {about['HTTPStatusCode']}, "
        f"Request ID: {about['RequestId']})"
    )
    return TaskFailedError(f"{name}.{_exception(name if kind == 'ClientError' else kind)}", cause)


def _exception(name: str) -> str:
    return name if name.endswith("Exception") else f"{name}Exception"
