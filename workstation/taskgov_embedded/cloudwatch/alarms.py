"""Evaluate the alarms of the account each minute, and notify their topics of each change, as CloudWatch does.

moto keeps alarms and evaluates none. A period ends with the minute of the evaluation, so that periods slide by a
minute. Alarms on a Metrics Insights query have a contributor for each series that the query returns; each notifies by
itself, and the alarm rings while one of them does.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from moto.cloudwatch.models import cloudwatch_backends

from taskgov_embedded.cloudwatch.alarm_rule import ALARM, INSUFFICIENT_DATA, OK, Judgement, State, judge
from taskgov_embedded.cloudwatch.metric_data import MetricData
from taskgov_embedded.cloudwatch.watch import ONE, Watch
from taskgov_embedded.iam import resource_policies

if TYPE_CHECKING:
    from moto.cloudwatch.models import Alarm

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call

CLOUDWATCH: Final = "cloudwatch.amazonaws.com"
TIMER: Final = "alarms"
"""The name under which alarms are evaluated while time is advanced."""


class Alarms:
    """All metric alarms of the account."""

    def __init__(self, account: Account) -> None:
        self._account = account
        self._data = MetricData(account.place)
        self._watches: dict[str, tuple[Alarm, Watch]] = {}
        self._contributors: dict[str, dict[str, State]] = {}
        self._told: list[tuple[datetime, str, str]] = []
        account.requests.listeners.append(self._on_call)

    def start(self) -> None:
        """Evaluate at each whole minute from now on."""
        self._account.clock.every(_next_minute, self.evaluate, TIMER)

    def state(self, logical_id: str) -> State:
        """Return the state of an alarm of the template."""
        found: State = self._alarms()[self._account.resources.physical(logical_id)].state_value
        return found

    def ringing(self) -> set[str]:
        """Return the logical ids of the alarms of the template that ring."""
        made = self._account.resources.of("AWS::CloudWatch::Alarm")
        return {alarm.logical_id for alarm in made if self.state(alarm.logical_id) == ALARM}

    def changes(self, logical_id: str) -> list[str]:
        """Return the states that an alarm of the template went into, first to last, as it reported them."""
        name = self._account.resources.physical(logical_id)
        return [state for _, alarm, state in self._told if alarm == name]

    def evaluate(self) -> None:
        """Evaluate every alarm for the minute that ends now."""
        self._account.metrics.measure_queues()
        self._data.read_on()
        end = self._account.clock.now.timestamp()
        for alarm in self._alarms().values():
            self._evaluate(alarm, end)

    def _evaluate(self, alarm: Alarm, end: float) -> None:
        watch = self._watch(alarm)
        values = watch.values(self._data, end)
        known = self._contributors.setdefault(alarm.name, {})
        before: State = alarm.state_value
        none = (None,) * watch.rule.points
        judged = {
            name: judge(values.get(name, none), watch.rule, known.get(name, before))
            for name in dict.fromkeys((*values, *known)) or (ONE,)
        }
        worst = max(judged.values(), key=lambda judgement: _WORSE[judgement.state])
        for name, judgement in judged.items():
            if known.get(name, before if name == ONE else OK) != judgement.state:
                self._tell(alarm, name, known.get(name, before), judgement)
        self._contributors[alarm.name] = {name: judgement.state for name, judgement in judged.items()}
        if worst.state != before:
            alarm.update_state(worst.reason, "{}", worst.state)

    def _alarms(self) -> dict[str, Alarm]:
        place = self._account.place
        found: dict[str, Alarm] = cloudwatch_backends[place.account][place.region].alarms
        return found

    def _watch(self, alarm: Alarm) -> Watch:
        kept = self._watches.get(alarm.name)
        if kept is None or kept[0] is not alarm:
            kept = self._watches[alarm.name] = (alarm, Watch(alarm))
        return kept[1]

    def _on_call(self, call: Call) -> None:
        """Let a new alarm begin without data, and one that was changed or set keep no contributors."""
        if call.service != "cloudwatch" or call.error is not None:
            return
        if call.operation == "PutMetricAlarm":
            alarm = self._alarms()[call.params["AlarmName"]]
            kept = self._watches.get(alarm.name)
            alarm.state_value = kept[0].state_value if kept else INSUFFICIENT_DATA
            self._watches[alarm.name] = (alarm, Watch(alarm))
            self._contributors.pop(alarm.name, None)
        elif call.operation == "SetAlarmState":
            self._contributors.pop(call.params["AlarmName"], None)
        elif call.operation == "DeleteAlarms":
            for name in call.params["AlarmNames"]:
                self._watches.pop(name, None)
                self._contributors.pop(name, None)

    def _tell(self, alarm: Alarm, contributor: str, before: State, judgement: Judgement) -> None:
        self._told.append((self._account.clock.now, alarm.name, judgement.state))
        of = f" ({contributor})" if contributor else ""
        self._account.timeline.add("alarm", f"{alarm.name}{of} {judgement.state}: {judgement.reason}")
        actions = {ALARM: alarm.alarm_actions, OK: alarm.ok_actions}.get(
            judgement.state, alarm.insufficient_data_actions
        )
        for arn in actions if alarm.actions_enabled else ():
            self._publish(arn, alarm, _message(alarm, before, judgement, self._account))

    def _publish(self, topic: str, alarm: Alarm, message: dict[str, Any]) -> None:
        """Publish to a topic if its policy, and its key's, let CloudWatch; an error is dropped, as there."""
        if topic.split(":")[2] != "sns":
            raise NotImplementedError(f"the embedded stack does no action {topic} of an alarm")
        account, source = self._account, alarm.alarm_arn
        allowed = resource_policies.allows(account, "AWS::SNS::TopicPolicy", topic, "sns:Publish", CLOUDWATCH, source)
        key = account.place.kms_keys.get(topic)
        for action in ("kms:GenerateDataKey", "kms:Decrypt") if key else ():
            allowed &= resource_policies.key_allows(account, str(key), action, CLOUDWATCH, source)
        if not allowed:
            account.timeline.add("denied", f"{CLOUDWATCH} may not publish to {topic} for {alarm.name}")
            return
        subject = f'{message["NewStateValue"]}: "{alarm.name}"'[:100]
        account.clients.of_person("sns").publish(TopicArn=topic, Subject=subject, Message=json.dumps(message))


_WORSE: Final[dict[State, int]] = {OK: 0, INSUFFICIENT_DATA: 1, ALARM: 2}


def _next_minute(moment: datetime) -> datetime:
    return datetime.fromtimestamp((moment.timestamp() // 60) * 60, UTC) + timedelta(minutes=1)


def _message(alarm: Alarm, before: State, judgement: Judgement, account: Account) -> dict[str, Any]:
    """Return what CloudWatch sends; the trigger, which nobody here reads, is left out."""
    return {
        "AlarmName": alarm.name,
        "AlarmDescription": alarm.description,
        "AWSAccountId": account.place.account,
        "NewStateValue": judgement.state,
        "NewStateReason": judgement.reason,
        "StateChangeTime": account.clock.iso,
        "Region": account.place.region,
        "AlarmArn": alarm.alarm_arn,
        "OldStateValue": before,
        "OKActions": alarm.ok_actions,
        "AlarmActions": alarm.alarm_actions,
        "InsufficientDataActions": alarm.insufficient_data_actions,
    }
