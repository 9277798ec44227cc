"""Invoke functions as callers of Lambda's API do: at once, or later with retries, destinations and dead letters."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.functions.versions import name_of, qualifier_of
from taskgov_embedded.functions.warm import LATEST, FunctionSpec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.cloudformation.resources import Resolved
    from taskgov_embedded.functions.runtime import Result, Runtime

RETRY_SECONDS = (60, 120)
"""How long Lambda waits before it tries an asynchronous event again, documented: one minute, then two."""


class Invocations:
    """Lambda's Invoke, in front of the runtime."""

    def __init__(self, account: Account, runtime: Runtime) -> None:
        self._account = account
        self._runtime = runtime
        self._versions = runtime.versions
        account.requests.answer("lambda", "Invoke", self._invoke)
        account.requests.answer("lambda", "GetFunctionConfiguration", self._configuration)
        account.requests.listeners.append(self._note_throttled)

    def add_all(self, root: Path) -> None:
        """Take the template's functions in, with their versions and aliases; their code is below `root`."""
        for kind in ("AWS::Lambda::Function", "AWS::Lambda::Version", "AWS::Lambda::Alias"):
            for resource in self._account.resources.of(kind):
                self.take(resource, root)

    def take(self, resource: Resolved, root: Path) -> None:
        """Take in one function, version or alias; any other resource is none of these."""
        match resource.kind:
            case "AWS::Lambda::Function":
                self._versions.add(self._spec(resource, root))
            case "AWS::Lambda::Version":
                self._versions.publish(name_of(resource.properties["FunctionName"]), qualifier_of(resource.physical_id))
            case "AWS::Lambda::Alias":
                name, version = name_of(resource.properties["FunctionName"]), resource.properties["FunctionVersion"]
                self._versions.point(name, resource.properties["Name"], version)
            case _:
                return

    def _configuration(self, call: Call) -> Mapping[str, Any]:
        """Say what people look up of a function: the VPC that it runs in."""
        name = name_of(call.params["FunctionName"])
        functions = self._account.resources.of("AWS::Lambda::Function")
        found = next((function for function in functions if function.physical_id == name), None)
        if found is None:
            raise AwsError("ResourceNotFoundException", f"Function not found: {call.resources[0]}")
        runs_in = found.properties.get("VpcConfig")
        return {"FunctionName": name, "Role": found.properties["Role"], **({"VpcConfig": runs_in} if runs_in else {})}

    def invoke_later(self, name_or_arn: str, event: Any, attempt: int = 0) -> None:
        """Take an asynchronous event."""
        self._account.turns.spawn(partial(self._run_async, name_or_arn, event, attempt), f"async {name_or_arn}")

    def _spec(self, function: Resolved, root: Path) -> FunctionSpec:
        properties = function.properties
        variables = properties.get("Environment", {}).get("Variables", {})
        return FunctionSpec(
            logical_id=function.logical_id,
            name=function.physical_id,
            arn=self._account.place.arn("lambda", f"function:{function.physical_id}"),
            role_arn=properties["Role"],
            handler=properties["Handler"],
            directory=root / properties["Code"]["S3Key"],
            layers=tuple(self._layer(arn, root) for arn in properties.get("Layers", [])),
            environment={name: _as_variable(value) for name, value in variables.items()},
            timeout_seconds=int(properties.get("Timeout", 3)),
            memory_mb=int(properties.get("MemorySize", 128)),
            log_group=properties.get("LoggingConfig", {}).get("LogGroup", f"/aws/lambda/{function.physical_id}"),
            traced=properties.get("TracingConfig", {}).get("Mode") == "Active",
        )

    def _layer(self, arn: str, root: Path) -> Path:
        for layer in self._account.resources.of("AWS::Lambda::LayerVersion"):
            if layer.physical_id == arn:
                key: str = layer.properties["Content"]["S3Key"]
                return root / key / "python"
        raise ValueError(f"the layer {arn} is not in the template")

    def _invoke(self, call: Call) -> Mapping[str, Any]:
        name = _qualified(call.params)
        if self._versions.spec(name) is None:
            raise AwsError("ResourceNotFoundException", f"Function not found: {name}")
        payload = call.params.get("Payload") or b"{}"
        event = json.loads(payload)
        if call.params.get("InvocationType") == "Event":
            self.invoke_later(name, event)
            return {"StatusCode": 202, "Payload": b""}
        result = self._runtime.invoke(name, event)
        answer = {"StatusCode": 200, "ExecutedVersion": result.version, "Payload": result.payload.encode()}
        return answer | ({"FunctionError": "Unhandled"} if result.is_error else {})

    def _note_throttled(self, call: Call) -> None:
        """Count a call that was refused: nothing limits concurrency here, so a fault did it."""
        if (call.service, call.operation, call.error) == ("lambda", "Invoke", "TooManyRequestsException"):
            name = _qualified(call.params)
            qualifier = None if qualifier_of(name) == LATEST else qualifier_of(name)
            self._account.metrics.throttled(name_of(name), qualifier)

    def _run_async(self, name_or_arn: str, event: Any, attempt: int) -> None:
        result = self._runtime.invoke(name_or_arn, event)
        settings = self._event_invoke_config(name_or_arn)
        if not result.is_error:
            self._send_to(name_or_arn, settings.get("DestinationConfig", {}).get("OnSuccess"), result, "Success")
        elif attempt < int(settings.get("MaximumRetryAttempts", len(RETRY_SECONDS))):
            again = partial(self.invoke_later, name_or_arn, event, attempt + 1)
            self._account.clock.after(RETRY_SECONDS[attempt], again)
        else:
            self._give_up(name_or_arn, settings, result)

    def _give_up(self, name_or_arn: str, settings: Mapping[str, Any], result: Result) -> None:
        self._send_to(name_or_arn, settings.get("DestinationConfig", {}).get("OnFailure"), result, "RetriesExhausted")
        function = self._properties(name_or_arn)
        target = function.get("DeadLetterConfig", {}).get("TargetArn")
        if target is not None:
            self._send(name_or_arn, target, json.dumps(result.event))

    def _send_to(self, name: str, destination: Mapping[str, Any] | None, result: Result, condition: str) -> None:
        if destination is None:
            return
        record = {
            "version": "1.0",
            "timestamp": self._account.clock.iso,
            "requestContext": {
                "requestId": result.request_id,
                "functionArn": f"{self._arn(name)}:{qualifier_of(name)}",
                "condition": condition,
            },
            "requestPayload": result.event,
            "responsePayload": result.value,
        }
        self._send(name, destination["Destination"], json.dumps(record))

    def _send(self, name: str, target: str, body: str) -> None:
        """Send with the function's role, as Lambda does for destinations and dead letters."""
        spec = self._versions.spec(name)
        assert spec is not None
        service = target.split(":")[2]
        client = partial(self._account.clients.of_role, role_arn=spec.role_arn, session=spec.name)
        if service == "sqs":
            person = self._account.clients.of_person("sqs")
            url = person.get_queue_url(QueueName=target.rpartition(":")[2])["QueueUrl"]
            client("sqs").send_message(QueueUrl=url, MessageBody=body)
        elif service == "sns":
            client("sns").publish(TopicArn=target, Message=body)
        elif service == "lambda":
            client("lambda").invoke(FunctionName=target, InvocationType="Event", Payload=body)
        elif service == "events":
            entry = {"Source": "lambda", "DetailType": "Lambda Function Invocation Result", "Detail": body}
            client("events").put_events(Entries=[entry | {"EventBusName": target}])
        else:
            raise NotImplementedError(f"the embedded stack has no destination {target}")

    def _arn(self, name: str) -> str:
        spec = self._versions.spec(name)
        assert spec is not None
        return spec.arn

    def _properties(self, name_or_arn: str) -> Mapping[str, Any]:
        spec = self._versions.spec(name_or_arn)
        assert spec is not None
        return self._account.resources.resolved[spec.logical_id].properties

    def _event_invoke_config(self, name_or_arn: str) -> Mapping[str, Any]:
        spec = self._versions.spec(name_or_arn)
        for config in self._account.resources.of("AWS::Lambda::EventInvokeConfig"):
            holder = (config.properties["FunctionName"], config.properties.get("Qualifier", LATEST))
            if spec is not None and holder == (spec.name, qualifier_of(name_or_arn)):
                return config.properties
        return {}


def _qualified(params: Mapping[str, Any]) -> str:
    """Return the function that is called, with the qualifier that stands beside its name."""
    name: str = params["FunctionName"]
    return f"{name}:{params['Qualifier']}" if "Qualifier" in params else name


def _as_variable(value: Any) -> str:
    """Write a variable as CloudFormation passes it on: text, booleans in lower case."""
    return str(value).lower() if isinstance(value, bool) else str(value)
