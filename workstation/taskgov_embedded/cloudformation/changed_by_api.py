"""Change and delete what `resources` makes through a service's API, when a template changes or goes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from taskgov_embedded.stepfunctions import definitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_embedded.aws_api.clients import Clients


class ChangedByApi:
    """The calls that bring a resource to new properties, or remove it; a type without a call is only written down."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._updates: dict[str, Callable[[str, dict[str, Any]], object]] = {
            "AWS::StepFunctions::StateMachine": self._state_machine,
            "AWS::Scheduler::Schedule": lambda name, to: self._of("scheduler").update_schedule(**(to | {"Name": name})),
            "AWS::CloudWatch::Alarm": lambda name, to: self._of("cloudwatch").put_metric_alarm(
                **(to | {"AlarmName": name})
            ),
            "AWS::CloudWatch::Dashboard": self._dashboard,
            "AWS::SSM::Parameter": lambda name, to: self._of("ssm").put_parameter(
                Name=name, Type=to["Type"], Value=to["Value"], Overwrite=True
            ),
            "AWS::Logs::LogGroup": lambda name, to: self._of("logs").put_retention_policy(
                logGroupName=name, retentionInDays=int(to["RetentionInDays"])
            ),
        }
        self._deletions: dict[str, Callable[[str, dict[str, Any]], object]] = {
            "AWS::SSM::Parameter": lambda name, _: self._of("ssm").delete_parameter(Name=name),
            "AWS::StepFunctions::StateMachine": lambda arn, _: self._of("stepfunctions").delete_state_machine(
                stateMachineArn=arn
            ),
            "AWS::Events::EventBus": lambda name, _: self._of("events").delete_event_bus(Name=name),
            "AWS::Scheduler::Schedule": self._delete_schedule,
            "AWS::Scheduler::ScheduleGroup": self._delete_schedule_group,
            "AWS::CloudWatch::Alarm": lambda name, _: self._of("cloudwatch").delete_alarms(AlarmNames=[name]),
            "AWS::CloudWatch::Dashboard": lambda name, _: self._of("cloudwatch").delete_dashboards(
                DashboardNames=[name]
            ),
            "AWS::SNS::Subscription": lambda arn, _: self._of("sns").unsubscribe(SubscriptionArn=arn),
            "AWS::Logs::LogGroup": lambda name, _: self._of("logs").delete_log_group(logGroupName=name),
        }

    def update(self, kind: str, physical_id: str, properties: dict[str, Any]) -> None:
        """Bring a resource to new properties."""
        if kind in self._updates:
            self._updates[kind](physical_id, properties)

    def delete(self, kind: str, physical_id: str, properties: dict[str, Any]) -> None:
        """Remove a resource."""
        if kind in self._deletions:
            self._deletions[kind](physical_id, properties)

    def _of(self, service: str) -> Any:
        return self._clients.of_person(service)

    def _state_machine(self, arn: str, properties: dict[str, Any]) -> None:
        text = definitions.text_of(arn.rpartition(":")[2], properties)
        self._of("stepfunctions").update_state_machine(
            stateMachineArn=arn, definition=text, roleArn=properties["RoleArn"]
        )

    def _dashboard(self, name: str, properties: dict[str, Any]) -> None:
        body = properties["DashboardBody"]
        text = body if isinstance(body, str) else json.dumps(body)
        self._of("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=text)

    def _delete_schedule(self, name: str, properties: dict[str, Any]) -> None:
        client = self._of("scheduler")
        try:
            client.delete_schedule(Name=name, GroupName=properties.get("GroupName", "default"))
        except client.exceptions.ResourceNotFoundException:
            return  # it went with its group

    def _delete_schedule_group(self, name: str, _properties: dict[str, Any]) -> None:
        """Delete a group with every schedule in it, those that runs made too, as Scheduler does."""
        client = self._of("scheduler")
        for one in client.list_schedules(GroupName=name)["Schedules"]:
            client.delete_schedule(Name=one["Name"], GroupName=name)
        client.delete_schedule_group(Name=name)
