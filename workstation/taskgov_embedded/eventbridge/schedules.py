"""Fire EventBridge schedules at their moments, with their roles; moto only keeps them.

Schedules of the template and those that functions make at run time are treated alike: after each call that makes,
changes or removes one, what is armed is compared with what moto holds. Recurring schedules fire while time is advanced,
one-off ones whenever their moment comes.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError
from moto.events.models import events_backends
from moto.scheduler.models import scheduler_backends

from taskgov_embedded.eventbridge import schedule_expression
from taskgov_embedded.eventbridge.bus import DeliveryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.eventbridge.bus import Bus
    from taskgov_embedded.virtual_time.clock import Recurring, Timer

SCHEDULER = "scheduler.amazonaws.com"


class Schedules:
    """All schedules of the account."""

    def __init__(self, account: Account, bus: Bus) -> None:
        self._account = account
        self._bus = bus
        self._armed: dict[str, tuple[str, Timer | Recurring | None]] = {}
        account.requests.listeners.append(self._on_call)

    def arm_rules(self) -> None:
        """Set the rules with a schedule expression (the older kind of schedule) going."""
        place = self._account.place
        for bus in events_backends[place.account][place.region].event_buses.values():
            for rule in bus.rules.values():
                if rule.scheduled_expression and rule.state != "DISABLED":
                    moments = schedule_expression.parse(rule.scheduled_expression, "UTC", self._account.clock.now)
                    self._account.clock.every(moments.next_after, partial(self._fire_rule, rule), rule.name)

    def arm(self) -> None:
        """Set timers for schedules that are new or changed, and take those away whose schedule is gone."""
        found = {schedule.arn: schedule for schedule in self._schedules()}
        for arn in [arn for arn in self._armed if arn not in found]:
            self._disarm(arn)
        for arn, schedule in found.items():
            wanted = json.dumps(schedule.to_dict(), default=str, sort_keys=True)
            if arn not in self._armed or self._armed[arn][0] != wanted:
                self._disarm(arn)
                self._armed[arn] = (wanted, self._timer(schedule))

    def fire(self, schedule: Any) -> None:
        """Do what the schedule says, now."""
        self._account.turns.spawn(partial(self._deliver, schedule), f"schedule {schedule.name}")

    def named(self, name: str) -> Any:
        """Return the schedule of a name."""
        return next(schedule for schedule in self._schedules() if schedule.name == name)

    def _schedules(self) -> list[Any]:
        place = self._account.place
        groups = scheduler_backends[place.account][place.region].schedule_groups
        return [schedule for group in groups.values() for schedule in group.schedules.values()]

    def _on_call(self, call: Call) -> None:
        changes = {"CreateSchedule", "UpdateSchedule", "DeleteSchedule", "DeleteScheduleGroup"}
        if call.service == "scheduler" and call.operation in changes and call.error is None:
            self.arm()

    def _disarm(self, arn: str) -> None:
        _, timer = self._armed.pop(arn, ("", None))
        if timer is not None:
            timer.cancel()

    def _timer(self, schedule: Any) -> Timer | Recurring | None:
        # An update that names no state sets the default, ENABLED; moto keeps None then.
        if schedule.state == "DISABLED":
            return None
        start = _moment(schedule.start_date) or _moment(schedule.creation_date)
        assert start is not None
        moments = schedule_expression.parse(schedule.schedule_expression, schedule.schedule_expression_timezone, start)
        if isinstance(moments, schedule_expression.At):
            due = moments.next_after(self._account.clock.now)
            return None if due is None else self._account.clock.at(due, partial(self._fire_once, schedule))
        end = _moment(schedule.end_date)

        def next_after(moment: datetime) -> datetime | None:
            due = moments.next_after(max(moment, start) if schedule.start_date else moment)
            return None if due is None or (end is not None and due > end) else due

        return self._account.clock.every(next_after, partial(self.fire, schedule), schedule.name)

    def _fire_once(self, schedule: Any) -> None:
        self.fire(schedule)
        if schedule.action_after_completion == "DELETE":
            client = self._account.clients.of_person("scheduler")
            client.delete_schedule(Name=schedule.name, GroupName=schedule.group_name)

    def _deliver(self, schedule: Any) -> None:
        target = schedule.target
        execution = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{schedule.arn}/{self._account.clock.iso}"))
        data = _filled(target.get("Input", "{}"), schedule.arn, self._account.clock.iso, execution)
        short = target["Arn"].replace("/", ":").rpartition(":")[2]
        try:
            self._call_target(target, data, execution)
        except ClientError as error:
            code = error.response["Error"]["Code"]
            self._account.timeline.add("delivery", f"schedule {schedule.name} -> {short} failed: {error}", error=code)
            for name in ("TargetErrorCount", "InvocationDroppedCount"):
                self._count(name, schedule)
            self._dead_letter(schedule, data, code)
            return
        self._account.timeline.add("delivery", f"schedule {schedule.name} -> {short}", input=data)

    def _call_target(self, target: Mapping[str, Any], data: str, execution: str) -> None:
        """Call the target's API with the schedule's role."""
        arn, role = target["Arn"], target["RoleArn"]
        service = arn.split(":")[2]
        client = partial(self._account.clients.of_role, role_arn=role, session="scheduler")
        if service == "sqs":
            sqs = client("sqs")
            url = self._account.clients.of_person("sqs").get_queue_url(QueueName=arn.rpartition(":")[2])["QueueUrl"]
            group = target.get("SqsParameters", {})
            sqs.send_message(QueueUrl=url, MessageBody=data, **group)
        elif service == "lambda":
            client("lambda").invoke(FunctionName=arn, InvocationType="Event", Payload=data)
        elif service == "states":
            client("stepfunctions").start_execution(stateMachineArn=arn, input=data, name=execution)
        elif service == "sns":
            client("sns").publish(TopicArn=arn, Message=data)
        elif service == "events":
            about = target["EventBridgeParameters"]
            entry = {"Source": about["Source"], "DetailType": about["DetailType"], "Detail": data, "EventBusName": arn}
            client("events").put_events(Entries=[entry])
        elif service == "scheduler":
            _, api, action = arn.rsplit(":", 2)
            universal = client("stepfunctions" if api == "sfn" else api)
            getattr(universal, re.sub(r"(?<!^)(?=[A-Z])", "_", action).lower())(**json.loads(data))
        else:
            raise NotImplementedError(f"the embedded stack cannot schedule {arn}")

    def _count(self, name: str, schedule: Any) -> None:
        self._account.metrics.count("AWS/Scheduler", name, ScheduleGroup=schedule.group_name)

    def _dead_letter(self, schedule: Any, data: str, code: str) -> None:
        target, schedule_arn = schedule.target, schedule.arn
        queue = target.get("DeadLetterConfig", {}).get("Arn")
        if queue is None:
            return
        about = {"ERROR_CODE": code, "SCHEDULE_ARN": schedule_arn, "TARGET_ARN": target["Arn"]}
        try:
            self._bus.send_to_queue(queue, data, SCHEDULER, schedule_arn, role=target["RoleArn"], attributes=about)
            self._count("InvocationsSentToDeadLetterCount", schedule)
        except DeliveryError as lost:
            self._count("InvocationsFailedToBeSentToDeadLetterCount", schedule)
            self._account.timeline.add("delivery", f"the input of {schedule_arn} is lost: {lost}", error=lost.code)

    def _fire_rule(self, rule: Any) -> None:
        event = {
            "version": "0",
            "id": str(uuid.uuid5(uuid.NAMESPACE_URL, f"{rule.arn}/{self._account.clock.iso}")),
            "detail-type": "Scheduled Event",
            "source": "aws.events",
            "account": self._account.place.account,
            "time": self._account.clock.iso,
            "region": self._account.place.region,
            "resources": [rule.arn],
            "detail": {},
        }
        self._account.timeline.add("event", f"aws.events: Scheduled Event of {rule.name}", event=event)
        self._bus.set_off(rule, event)


def _moment(value: Any) -> datetime | None:
    """Read moto's dates: epoch seconds or text."""
    if value is None:
        return None
    if isinstance(value, int | float):
        return datetime.fromtimestamp(value, UTC)
    read = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _filled(template: str, schedule_arn: str, time: str, execution: str) -> str:
    """Fill the context attributes that Scheduler offers in an input."""
    values = {
        "<aws.scheduler.schedule-arn>": schedule_arn,
        "<aws.scheduler.scheduled-time>": time,
        "<aws.scheduler.execution-id>": execution,
        "<aws.scheduler.attempt-number>": "1",
    }
    for name, value in values.items():
        template = template.replace(name, value)
    return template
