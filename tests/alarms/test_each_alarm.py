"""Each alarm rings for its cause, and stops when that is over: a row for each of the template."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from taskgov.services import metric_catalogue
from taskgov_embedded.cloudformation.template import translate
from taskgov_embedded.cloudwatch import emf
from taskgov_embedded.cloudwatch.alarms import TIMER
from tests.alarms.newcomer import HOUR, MINUTE, ROOT, Account

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskgov.services.metric_form import Metric

pytestmark = pytest.mark.long

ON = {"AlarmPreemptions": "2", "AlarmPendingSeconds": "3600", "AlarmStarvation": "yes", "AlarmOvercommit": "3"}
SILENT = {"PublishingStaleAlarm"}
"""Rings in every row but its own: no schedule fires while an hour passes here."""
FORGOTTEN = 20
"""Minutes after which no data point of a period of five minutes is looked at any more."""


class Hour:
    """What a row does: it lets time pass, in which alarms are evaluated and nothing comes by itself."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.stack = account.stack

    def wait(self, minutes: float) -> None:
        self.stack.advance(minutes * MINUTE, schedules=[TIMER])

    def fire(self, schedule: str, minutes: float = 1) -> None:
        self.stack.fire(schedule)
        self.wait(minutes)

    def purge(self, queue: str) -> None:
        self.stack.client("sqs").purge_queue(QueueUrl=self.stack.physical(queue))
        self.wait(FORGOTTEN)

    def invoke(self, function: str, qualifier: str = "$LATEST") -> None:
        """Invoke a function with an event that it cannot read."""
        self.stack.client("lambda").invoke(
            FunctionName=self.stack.physical(function), Qualifier=qualifier, Payload=json.dumps({"odd": True})
        )

    def break_off(self, machine: str) -> None:
        """Let an execution fail at once, as Step Functions counts it, by stopping it."""
        arn = self.stack.start_execution(machine, {"clusterArn": "none"})
        self.stack.client("stepfunctions").stop_execution(executionArn=arn)

    def measure(self, metric: Metric, value: float) -> None:
        """Publish a value of a metric as `publish_usage` does, of one cluster."""
        names = ("Cluster", *metric.dimensions)
        dimensions = tuple((name, "ml-cluster" if name == "Cluster" else f"a {name}") for name in names)
        now = self.stack.clock.now
        emf.put(
            [emf.Datum(metric_catalogue.NAMESPACE, metric.name, dimensions, (value,), metric.unit, now)],
            self.stack.place,
        )


@dataclass(frozen=True)
class Row:
    """What makes an alarm ring, what ends it, and which others ring for the same cause."""

    rings: Callable[[Hour], None]
    ends: Callable[[Hour], None]
    others: frozenset[str] = frozenset()


def _over(hour: Hour) -> None:
    hour.wait(FORGOTTEN)


def _poison(hour: Hour) -> None:
    hour.stack.client("sqs").send_message(QueueUrl=hour.stack.physical("IntakeQueue"), MessageBody="{broken")


def _no_delivery(hour: Hour) -> None:
    hour.stack.faults.fail("events", "Deliver", code="NO_PERMISSIONS")
    hour.stack.sagemaker.emit_cluster_state_change(hour.account.good)
    hour.wait(3)


def _lose(hour: Hour) -> None:
    """Let a person forbid EventBridge the queue of dead letters too."""
    denied = {"Effect": "Deny", "Principal": {"Service": "events.amazonaws.com"}, "Action": "sqs:*", "Resource": "*"}
    _set_policy(hour, {"Version": "2012-10-17", "Statement": [denied]})
    _no_delivery(hour)


def _set_policy(hour: Hour, policy: dict[str, object] | None) -> None:
    url = hour.stack.physical("DeliveryDeadLetterQueue")
    attributes = {"Policy": json.dumps(policy) if policy else ""}
    hour.stack.client("sqs").set_queue_attributes(QueueUrl=url, Attributes=attributes)


def _throttle(hour: Hour) -> None:
    for _ in range(3):
        hour.stack.faults.fail("lambda", "Invoke", code="TooManyRequestsException", status=429)
        with suppress(ClientError):
            hour.invoke("PlanQuotasFunction", "live")
        hour.stack.faults.clear()
        hour.wait(5)


def _drop(hour: Hour) -> None:
    hour.stack.faults.fail("stepfunctions", "StartExecution", code="StateMachineDoesNotExist")
    hour.fire("PublishUsageSchedule", 2)


def _no_list(hour: Hour) -> None:
    hour.stack.faults.fail("sagemaker", "ListClusters", code="ThrottlingException", times=5)
    hour.fire("ResyncAllSchedule", 5)


def _lock_out(hour: Hour) -> None:
    hour.account.take_access("good")


def _let_in(hour: Hour) -> None:
    hour.account.give_access("good")
    hour.fire("ResyncAllSchedule", 2)
    for _ in range(3):
        hour.fire("PublishUsageSchedule", 15)


def _unreadable(hour: Hour) -> None:
    _lock_out(hour)
    for _ in range(2):
        hour.fire("PublishUsageSchedule", 15)


def _stale(hour: Hour) -> None:
    hour.wait(2 * HOUR / MINUTE + 1)  # no resync comes
    hour.fire("PublishUsageSchedule", 2)


def _missed(hour: Hour) -> None:
    _lock_out(hour)
    hour.fire("AuditAllSchedule", 4)


def _measured(metric: Metric, value: float, times: int = 1) -> Callable[[Hour], None]:
    def measure(hour: Hour) -> None:
        for _ in range(times):
            hour.measure(metric, value)
            hour.wait(15)

    return measure


def _often(function: str, times: int, qualifier: str) -> Callable[[Hour], None]:
    def fail(hour: Hour) -> None:
        for _ in range(times):
            hour.invoke(function, qualifier)
        hour.wait(2)

    return fail


def _stopped(machine: str) -> Callable[[Hour], None]:
    def stop(hour: Hour) -> None:
        hour.break_off(machine)
        hour.wait(2)

    return stop


def _both(*parts: Callable[[Hour], None]) -> Callable[[Hour], None]:
    def do(hour: Hour) -> None:
        for part in parts:
            part(hour)

    return do


ROWS = {
    "AuditFailedAlarm": Row(_stopped("AuditStateMachine"), _over),
    "AuditMissedAlarm": Row(_missed, _both(_let_in, _over)),
    "ClusterStaleAlarm": Row(_stale, _let_in),
    "ClusterUnreadableAlarm": Row(_unreadable, _let_in),
    "DeliveryDeadLettersAlarm": Row(_no_delivery, lambda hour: hour.purge("DeliveryDeadLetterQueue")),
    "EventsLostAlarm": Row(_lose, _both(lambda hour: _set_policy(hour, None), _over)),
    "FanOutFailedAlarm": Row(_no_list, _over),
    "FunctionErrorsAlarm": Row(_often("PlanQuotasFunction", 6, "$LATEST"), _over),
    "FunctionsThrottledAlarm": Row(_throttle, _both(_over, _over)),
    "IntakeDeadLettersAlarm": Row(
        _both(_poison, lambda hour: hour.wait(40)),
        lambda hour: hour.purge("IntakeDeadLetterQueue"),
        frozenset({"IntakeDelayedAlarm"}),
    ),
    "IntakeDelayedAlarm": Row(
        _both(_poison, lambda hour: hour.wait(26)),
        _both(lambda hour: hour.wait(20), lambda hour: hour.purge("IntakeDeadLetterQueue")),
    ),
    "NewIntakeVersionErrorsAlarm": Row(_often("ReceiveEventFunction", 1, "live"), _over),
    "NewVersionErrorsAlarm": Row(_often("PlanQuotasFunction", 1, "live"), _over),
    "OvercommitAlarm": Row(_measured(metric_catalogue.OVERCOMMIT, 4, times=2), lambda hour: hour.wait(70)),
    "PendingAlarm": Row(_measured(metric_catalogue.OLDEST_PENDING_SECONDS, 3601), lambda hour: hour.wait(60)),
    "PreemptionsAlarm": Row(_measured(metric_catalogue.PREEMPTIONS, 3), lambda hour: hour.wait(200)),
    "PublishingStaleAlarm": Row(lambda hour: hour.wait(20), lambda hour: hour.fire("PublishUsageSchedule", 2)),
    "ReconcileFailedAlarm": Row(_stopped("ReconcileStateMachine"), _over),
    "SchedulesDroppedAlarm": Row(_drop, _over),
    "StarvationAlarm": Row(_measured(metric_catalogue.TEAMS_STARVED, 1), lambda hour: hour.wait(60)),
}


@pytest.fixture(scope="module")
def hour() -> Iterator[Hour]:
    with Account(ON) as account:
        account.good = account.add_cluster("good")
        account.give_access("good")
        account.put_document(account.good)
        account.stack.run_until_quiet()
        started = Hour(account)
        started.fire("PublishUsageSchedule", 2)
        yield started


def test_every_alarm_of_the_template_has_a_row() -> None:
    assert translate(ROOT / "template.yaml", {}).resources_of("AWS::CloudWatch::Alarm").keys() == ROWS.keys()


@pytest.mark.parametrize("alarm", ROWS)
def test_it_rings_for_its_cause_and_stops_when_that_is_over(hour: Hour, alarm: str) -> None:
    row, alarms = ROWS[alarm], hour.stack.alarms
    hour.fire("ResyncAllSchedule", 15)
    hour.fire("PublishUsageSchedule", 2)
    assert alarms.ringing() == set()
    row.rings(hour)
    assert alarm in alarms.ringing()
    assert alarms.ringing() - {alarm} - SILENT <= row.others
    row.ends(hour)
    assert alarms.ringing() - (SILENT - {alarm}) == set()
    assert alarms.changes(alarm)[-2:] == ["ALARM", "OK"]
