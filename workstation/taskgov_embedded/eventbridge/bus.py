"""Deliver events as EventBridge does: match rules, make each target's input, deliver with the target's permission.

moto keeps buses, rules and targets; delivering is done here, because moto delivers neither to functions nor to state
machines, ignores `Input`, and has no dead-letter queues. Each delivery is a thread of its own on the stack's clock.
"""

from __future__ import annotations

import itertools
import json
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any

from moto.events.models import events_backends
from moto.moto_api._internal import mock_random
from moto.sqs.models import Message, sqs_backends

from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.eventbridge.event_input import InputError, target_input
from taskgov_embedded.iam import evaluation, resource_policies

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from botocore.exceptions import ClientError

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call


EVENTS = "events.amazonaws.com"
MAX_EVENT_BYTES = 256 * 1024


class DeliveryError(Exception):
    """A target that could not be reached; `code` is EventBridge's ERROR_CODE for the dead-letter queue."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Bus:
    """The event buses of the account."""

    def __init__(self, account: Account, invoke_later: Callable[[str, Any], None]) -> None:
        self._account = account
        self._place = account.place
        self._requests = account.requests
        self._timeline = account.timeline
        self._invoke_later = invoke_later
        self._number = itertools.count(1)
        self.delivery_seconds = 0.0
        account.requests.answer("events", "PutEvents", self._put_events)

    def publish(
        self,
        source: str,
        detail_type: str,
        detail: Mapping[str, Any],
        resources: Sequence[str] = (),
        bus: str = "default",
    ) -> str:
        """Put an event on a bus, whatever its source, and set off its deliveries; returns its id."""
        event = self._event(source, detail_type, detail, resources)
        self.publish_event(event, bus)
        return str(event["id"])

    def publish_if_asked_for(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str]
    ) -> None:
        """Put an event on the default bus if a rule matches it: an event without a matching rule leaves no trace."""
        event = {"source": source, "detail-type": detail_type, "detail": detail, "resources": list(resources)}
        if any(_matches(rule, event) for rule in self._rules("default")):
            self.publish(source, detail_type, detail, resources)

    def _event(
        self, source: str, detail_type: str, detail: Mapping[str, Any], resources: Sequence[str]
    ) -> dict[str, Any]:
        return {
            "version": "0",
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"event/{next(self._number)}")),
            "detail-type": detail_type,
            "source": source,
            "account": self._place.account,
            "time": self._account.clock.iso,
            "region": self._place.region,
            "resources": list(resources),
            "detail": json.loads(json.dumps(detail)),
        }

    def publish_event(self, event: Mapping[str, Any], bus: str = "default") -> None:
        """Put a complete event on a bus (a sample file, or one that another bus passes on)."""
        self._timeline.add("event", f"{event['source']}: {event['detail-type']}", event=event, bus=bus)
        for rule in self._rules(bus):
            if _matches(rule, event):
                self.set_off(rule, event)

    def set_off(self, rule: Any, event: Mapping[str, Any]) -> None:
        """Deliver an event to all targets of a rule; an archive, moto's own kind of target, keeps nothing here."""
        for target in rule.targets:
            if not target["Arn"].endswith(":::"):
                deliver = partial(self._spawn, rule, target, event)
                self._account.clock.after(self.delivery_seconds, deliver)

    def _spawn(self, rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        self._account.turns.spawn(lambda: self._deliver_once_or_more(rule, target, event), f"deliver {rule.name}")

    def _rules(self, bus: str) -> Iterable[Any]:
        name = bus.rsplit("/", 1)[-1]
        return list(events_backends[self._place.account][self._place.region].event_buses[name].rules.values())

    def _put_events(self, call: Call) -> Mapping[str, Any]:
        entries = [self._put_event(entry) for entry in call.params["Entries"]]
        return {"FailedEntryCount": sum("ErrorCode" in answer for answer in entries), "Entries": entries}

    def _put_event(self, entry: Mapping[str, Any]) -> dict[str, str]:
        source = entry.get("Source", "")
        if source.startswith("aws."):
            return _refused("NotAuthorizedForSource", "Not authorized for the source.")
        for required in ("Source", "DetailType", "Detail"):
            if not entry.get(required):
                reason = f"Parameter {required} is not valid. Reason: {required} is a required argument."
                return _refused("InvalidArgument", reason)
        try:
            detail = json.loads(entry["Detail"])
        except ValueError:
            return _refused("MalformedDetail", "Detail is malformed.")
        if len(entry["Detail"]) > MAX_EVENT_BYTES:
            raise AwsError("ValidationException", f"Total size of the entries exceeds {MAX_EVENT_BYTES} bytes")
        event_bus = entry.get("EventBusName", "default")
        event_id = self.publish(source, entry["DetailType"], detail, entry.get("Resources", ()), event_bus)
        return {"EventId": event_id}

    def _deliver_once_or_more(self, rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        fault = self._account.faults.take(
            "events", "Deliver", {"Target": target["Arn"], "Rule": rule.name, "Event": event}
        )
        if fault is not None:
            self._timeline.add("fault", f"{fault.effect} delivery of {rule.name}", fault=fault)
            if fault.effect == "delay":
                self._account.turns.sleep(fault.seconds)
            elif fault.effect == "duplicate":
                self._deliver(rule, target, event)
            else:
                self._dead_letter(rule, target, event, DeliveryError(fault.code, fault.message))
                return
        self._deliver(rule, target, event)

    def _deliver(self, rule: Any, target: Mapping[str, Any], event: Mapping[str, Any]) -> None:
        try:
            data = target_input(target, event, rule.arn)
            self._hand_over(rule.arn, target, data, event["id"])
        except (DeliveryError, InputError) as error:
            self._dead_letter(rule, target, event, error)
            return
        self._timeline.add(
            "delivery", f"{rule.name} -> {_short(target['Arn'])}", rule=rule.arn, target=target, input=data
        )

    def _hand_over(self, rule_arn: str, target: Mapping[str, Any], data: Any, event_id: str) -> None:
        """Deliver by the service in the target's ARN."""
        service = target["Arn"].split(":")[2]
        deliver = {
            "sqs": self._to_queue,
            "lambda": self._to_function,
            "states": self._to_state_machine,
            "sns": self._to_topic,
            "events": self._to_bus,
        }.get(service)
        if deliver is None:
            raise DeliveryError("UNSUPPORTED", f"the embedded stack cannot deliver to {target['Arn']}")
        deliver(rule_arn, target, data, event_id)

    def _to_queue(self, rule_arn: str, target: Mapping[str, Any], data: Any, _event_id: str) -> None:
        self.send_to_queue(target["Arn"], json.dumps(data), EVENTS, rule_arn, role=target.get("RoleArn"))

    def send_to_queue(
        self,
        queue_arn: str,
        body: str,
        service: str,
        source_arn: str,
        *,
        role: str | None = None,
        attributes: Mapping[str, str] | None = None,
    ) -> None:
        """Send a message as an AWS service, if the queue's policy (or the role, when there is one) lets it."""
        if role is not None:
            allowed = self._requests.allows(role, "sqs:SendMessage", queue_arn)
        else:
            allowed = resource_policies.allows(
                self._account, "AWS::SQS::QueuePolicy", queue_arn, "sqs:SendMessage", service, source_arn
            )
        if not allowed:
            raise DeliveryError("NO_PERMISSIONS", f"{service} may not send to {queue_arn} for {source_arn}")
        name = queue_arn.rsplit(":", 1)[-1]
        queue = sqs_backends[self._place.account][self._place.region].get_queue(name)
        message = Message(str(mock_random.uuid4()), body)
        message.message_attributes = {
            key: {"DataType": "String", "StringValue": value} for key, value in (attributes or {}).items()
        }
        # Not by moto's `send_message`: it counts all that lies in the queue, each time.
        message.mark_sent(delay_seconds=queue.delay_seconds)
        queue.add_message(message)

    def _to_function(self, rule_arn: str, target: Mapping[str, Any], data: Any, _event_id: str) -> None:
        name = target["Arn"]
        if not self._function_permits(name, EVENTS, rule_arn):
            raise DeliveryError("NO_PERMISSIONS", f"no permission of {name} lets {EVENTS} invoke it for {rule_arn}")
        self._invoke_later(name, data)

    def _to_state_machine(self, _rule_arn: str, target: Mapping[str, Any], data: Any, event_id: str) -> None:
        client = self._account.clients.of_role("stepfunctions", target["RoleArn"], "events")
        with _failing_as_delivery(client.exceptions.ClientError):
            client.start_execution(stateMachineArn=target["Arn"], name=event_id, input=json.dumps(data))

    def _to_topic(self, rule_arn: str, target: Mapping[str, Any], data: Any, _event_id: str) -> None:
        topic = target["Arn"]
        if not resource_policies.allows(self._account, "AWS::SNS::TopicPolicy", topic, "sns:Publish", EVENTS, rule_arn):
            raise DeliveryError("NO_PERMISSIONS", f"no policy of {target['Arn']} lets {EVENTS} publish to it")
        message = data if isinstance(data, str) else json.dumps(data)
        self._account.clients.of_person("sns").publish(TopicArn=target["Arn"], Message=message)

    def _to_bus(self, _rule_arn: str, target: Mapping[str, Any], data: Any, _event_id: str) -> None:
        if not self._requests.allows(target["RoleArn"], "events:PutEvents", target["Arn"]):
            raise DeliveryError("NO_PERMISSIONS", f"{target['RoleArn']} may not put events on {target['Arn']}")
        self.publish_event(data, target["Arn"])

    def _function_permits(self, arn: str, service: str, source_arn: str) -> bool:
        name = arn.rsplit("function:", 1)[-1].split(":", maxsplit=1)[0]
        return any(
            permission.properties["FunctionName"].rsplit("function:", 1)[-1] == name
            and permission.properties["Principal"] == service
            and evaluation.matches(permission.properties.get("SourceArn", "*"), source_arn)
            for permission in self._account.resources.of("AWS::Lambda::Permission")
        )

    def _count(self, name: str, rule: Any) -> None:
        """Count it for the rule; a rule of another bus than the default one is named with its bus."""
        bus = {} if rule.event_bus_name == "default" else {"EventBusName": rule.event_bus_name}
        self._account.metrics.count("AWS/Events", name, RuleName=rule.name, **bus)

    def _dead_letter(self, rule: Any, target: Mapping[str, Any], event: Mapping[str, Any], error: Exception) -> None:
        code = error.code if isinstance(error, DeliveryError) else "INVALID_JSON"
        what = f"{rule.name} -> {_short(target['Arn'])} failed: {code}: {error}"
        self._timeline.add("delivery", what, rule=rule.arn, target=target, error=code)
        self._count("FailedInvocations", rule)
        queue = target.get("DeadLetterConfig", {}).get("Arn")
        if queue is None:
            return
        attributes = {
            "ERROR_CODE": code,
            "ERROR_MESSAGE": str(error),
            "RULE_ARN": rule.arn,
            "TARGET_ARN": target["Arn"],
        }
        try:
            self.send_to_queue(queue, json.dumps(event), EVENTS, rule.arn, attributes=attributes)
            self._count("InvocationsSentToDlq", rule)
        except DeliveryError as lost:
            self._count("InvocationsFailedToBeSentToDlq", rule)
            self._timeline.add("delivery", f"event of {rule.name} is lost: {lost}", rule=rule.arn, error=lost.code)


class _failing_as_delivery:  # noqa: N801 reads as a statement
    """Turn a client's error into one of the delivery."""

    def __init__(self, kind: type[ClientError]) -> None:
        self._kind = kind

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, self._kind):
            code = error.response["Error"]["Code"]
            raise DeliveryError("NO_PERMISSIONS" if "AccessDenied" in code else code, str(error)) from error


def _matches(rule: Any, event: Mapping[str, Any]) -> bool:
    pattern = rule.event_pattern
    return bool(rule.state != "DISABLED" and pattern.get_pattern() and pattern.matches_event(event))


def _refused(code: str, message: str) -> dict[str, str]:
    return {"ErrorCode": code, "ErrorMessage": message}


def _short(arn: str) -> str:
    return arn.replace("/", ":").rpartition(":")[2]
