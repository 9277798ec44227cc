"""Take messages from SQS to functions, as Lambda's event source mappings do.

moto delivers inside `send_message`, one record at a time, without failures per item. Here a mapping polls with its
function's role as soon as a message can be received (after its delay and the batching window), deletes what
succeeded, and leaves the rest to come back after the visibility time-out, until `maxReceiveCount` sends it to the
dead-letter queue.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from moto.events.models import EventPattern
from moto.sqs.models import Message, Queue, SQSBackend, sqs_backends

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.patches import Patches
    from taskgov_embedded.cloudformation.resources import Resources
    from taskgov_embedded.functions.runtime import Result, Runtime

MAX_RECEIVED_AT_ONCE = 10


@dataclass(frozen=True, slots=True)
class SourceMapping:
    """One event source mapping."""

    logical_id: str
    queue_arn: str
    function: str
    batch_size: int
    window_seconds: float
    reports_items: bool
    patterns: tuple[Mapping[str, Any], ...]

    @property
    def queue_name(self) -> str:
        """The queue's own name."""
        return self.queue_arn.rsplit(":", 1)[-1]


class EventSourceMappings:
    """All event source mappings of the stack."""

    def __init__(self, account: Account, runtime: Runtime) -> None:
        self._account = account
        self._runtime = runtime
        self._mappings: list[SourceMapping] = []
        self._due: set[tuple[str, datetime]] = set()

    def install(self, patches: Patches) -> None:
        """Get each message that any queue takes in."""
        own_add, clock = Queue.add_message, self._account.clock

        def add_message(queue: Any, message: Any) -> None:
            own_add(queue, message)
            self._on_message(queue, message)

        def is_kept(backend: Any, queue_name: str, message: Any) -> bool:
            kept_for = backend.get_queue(queue_name).message_retention_period
            return bool(message.sent_timestamp + kept_for * 1000 > clock.millis)

        patches.replace(Queue, "add_message", add_message, "mappings wait for messages, and moto announces none")
        why = "moto hides a message until after its moment, and so forever on a clock that stands still at that moment"
        patches.replace(Message, "visible", property(lambda message: message.visible_at <= clock.millis), why)
        patches.replace(Message, "delayed", property(lambda message: clock.millis < message.delayed_until), why)
        patches.replace(
            SQSBackend,
            "is_message_valid_based_on_retention_period",
            is_kept,
            "speed: moto counts all that lies in a queue for each message in it",
        )

    def add_mappings(self, resources: Resources) -> None:
        """Take the template's mappings in, and drop those that it no longer has."""
        self._mappings.clear()
        for mapping in resources.of("AWS::Lambda::EventSourceMapping"):
            properties = mapping.properties
            if properties.get("Enabled", True) in {True, "true"}:
                filters = properties.get("FilterCriteria", {}).get("Filters", [])
                self._mappings.append(
                    SourceMapping(
                        logical_id=mapping.logical_id,
                        queue_arn=properties["EventSourceArn"],
                        function=properties["FunctionName"],
                        batch_size=int(properties.get("BatchSize", 10)),
                        window_seconds=float(properties.get("MaximumBatchingWindowInSeconds", 0)),
                        reports_items="ReportBatchItemFailures" in properties.get("FunctionResponseTypes", []),
                        patterns=tuple(json.loads(pattern["Pattern"]) for pattern in filters),
                    )
                )

    def _on_message(self, queue: Any, message: Any) -> None:
        """Poll when the message can be received and its batch has been waited for."""
        for mapping in self._mappings:
            if mapping.queue_name == queue.name:
                delay = max(0.0, (message.delayed_until - self._account.clock.millis) / 1000)
                full = not delay and queue.approximate_number_of_messages % mapping.batch_size == 0
                self._poll_in(mapping, delay + (0 if full else mapping.window_seconds))

    def _poll_in(self, mapping: SourceMapping, seconds: float) -> None:
        """Poll once at a moment, however many messages can be received then."""
        moment = (mapping.logical_id, self._account.clock.now + timedelta(seconds=seconds))
        if moment not in self._due:
            self._due.add(moment)
            self._account.clock.after(seconds, partial(self._spawn_poll, mapping, moment))

    def _spawn_poll(self, mapping: SourceMapping, moment: tuple[str, datetime]) -> None:
        self._due.discard(moment)
        self._account.turns.spawn(partial(self._poll, mapping), f"poll {mapping.queue_name}")

    def _poll(self, mapping: SourceMapping) -> None:
        """Deliver batches until nothing can be received; what fails is tried again when it is visible again."""
        spec = self._runtime.versions.spec(mapping.function)
        assert spec is not None, f"{mapping.logical_id} names the function {mapping.function}, which is not there"
        sqs = self._account.clients.of_role("sqs", spec.role_arn, "event-source-mapping")
        person = self._account.clients.of_person("sqs")
        url = person.get_queue_url(QueueName=mapping.queue_name)["QueueUrl"]
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["VisibilityTimeout"])["Attributes"]
        while batch := self._receive(sqs, url, mapping):
            wanted, unwanted = _filtered(batch, mapping.patterns)
            _delete(sqs, url, unwanted)
            if wanted:
                failed = self._deliver(mapping, wanted)
                _delete(sqs, url, [message for message in wanted if message["MessageId"] not in failed])
                if failed:
                    self._poll_in(mapping, float(attributes["VisibilityTimeout"]))
            if mapping.window_seconds and self._waiting(mapping) < mapping.batch_size:
                self._poll_in(mapping, mapping.window_seconds)
                return

    def _waiting(self, mapping: SourceMapping) -> int:
        """Count what could be received now."""
        backend = sqs_backends[self._account.place.account][self._account.place.region]
        waiting: int = backend.get_queue(mapping.queue_name).approximate_number_of_messages
        return waiting

    def _receive(self, sqs: Any, url: str, mapping: SourceMapping) -> list[dict[str, Any]]:
        batch: list[dict[str, Any]] = []
        while len(batch) < mapping.batch_size:
            received = sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=min(MAX_RECEIVED_AT_ONCE, mapping.batch_size - len(batch)),
                MessageSystemAttributeNames=["All"],
                MessageAttributeNames=["All"],
            ).get("Messages", [])
            if not received:
                break
            batch += received
        return batch

    def _deliver(self, mapping: SourceMapping, batch: list[dict[str, Any]]) -> frozenset[str]:
        """Invoke the function with a batch and return the ids of the messages that failed."""
        event = {"Records": [self._record(mapping, message) for message in batch]}
        self._account.timeline.add(
            "delivery", f"{mapping.queue_name} -> {mapping.function} ({len(batch)})", event=event
        )
        return _failed(
            self._runtime.invoke(mapping.function, event), mapping, [message["MessageId"] for message in batch]
        )

    def _record(self, mapping: SourceMapping, message: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "messageId": message["MessageId"],
            "receiptHandle": message["ReceiptHandle"],
            "body": message["Body"],
            "attributes": message["Attributes"],
            "messageAttributes": {
                name: {"stringValue": value.get("StringValue"), "dataType": value["DataType"]}
                for name, value in message.get("MessageAttributes", {}).items()
            },
            "md5OfBody": message["MD5OfBody"],
            "eventSource": "aws:sqs",
            "eventSourceARN": mapping.queue_arn,
            "awsRegion": self._account.place.region,
        }


def _failed(result: Result, mapping: SourceMapping, ids: list[str]) -> frozenset[str]:
    """Read the answer: an error, or a report that names a message that is not there, fails the whole batch."""
    if result.is_error:
        return frozenset(ids)
    if not mapping.reports_items or not isinstance(result.value, dict):
        return frozenset()
    named = [failure.get("itemIdentifier") for failure in result.value.get("batchItemFailures") or []]
    return frozenset(named) if set(named) <= set(ids) else frozenset(ids)


def _filtered(
    batch: Iterable[dict[str, Any]], patterns: tuple[Mapping[str, Any], ...]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Split a batch by the mapping's filters; without filters everything is wanted."""
    wanted: list[dict[str, Any]] = []
    unwanted: list[dict[str, Any]] = []
    for message in batch:
        keep = not patterns or any(_matches(message, pattern) for pattern in patterns)
        (wanted if keep else unwanted).append(message)
    return wanted, unwanted


def _matches(message: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    body = message["Body"]
    data = json.loads(body) if body.startswith("{") else body
    matched: bool = EventPattern(None, dict(pattern)).matches_event({"body": data})
    return matched


def _delete(sqs: Any, url: str, messages: list[dict[str, Any]]) -> None:
    for start in range(0, len(messages), MAX_RECEIVED_AT_ONCE):
        entries = [
            {"Id": str(place), "ReceiptHandle": message["ReceiptHandle"]}
            for place, message in enumerate(messages[start : start + MAX_RECEIVED_AT_ONCE])
        ]
        sqs.delete_message_batch(QueueUrl=url, Entries=entries)
