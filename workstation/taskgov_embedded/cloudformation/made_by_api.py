"""Make, change and delete resources through their service's API, type by type.

Those that moto's CloudFormation does not know, or gets wrong.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from taskgov_embedded.cloudformation.made_resource import MadeResource, MadeType, Properties
from taskgov_embedded.stepfunctions import definitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_embedded.aws_api.clients import Clients
    from taskgov_embedded.place import Place

_SUBSCRIPTION_ATTRIBUTES = ("FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy")


class MadeByApi:
    """The calls that make, change and delete resources of one account."""

    def __init__(self, place: Place, clients: Clients) -> None:
        self._place = place
        self._clients = clients
        self._published: dict[str, int] = {}

    def types(self) -> list[MadeType]:
        """Return the types; a change for which a type has no call is only written down."""
        by = self._deleted_by
        return [
            MadeType("AWS::Lambda::Version", None, self._version),
            MadeType("AWS::Lambda::Alias", None, self._alias),
            MadeType(
                "AWS::StepFunctions::StateMachine",
                "StateMachineName",
                self._state_machine,
                self._change_state_machine,
                by("stepfunctions", "delete_state_machine", "stateMachineArn"),
            ),
            MadeType("AWS::Events::EventBus", "Name", self._event_bus, None, by("events", "delete_event_bus", "Name")),
            MadeType("AWS::Scheduler::Schedule", "Name", self._schedule, self._change_schedule, self._delete_schedule),
            MadeType("AWS::Scheduler::ScheduleGroup", "Name", self._schedule_group, None, self._delete_schedule_group),
            MadeType("AWS::CloudWatch::Alarm", "AlarmName", self._alarm, self._alarm, self._delete_alarm),
            MadeType("AWS::CloudWatch::Dashboard", "DashboardName", self._board, self._board, self._delete_board),
            MadeType(
                "AWS::SNS::Subscription", None, self._subscription, None, by("sns", "unsubscribe", "SubscriptionArn")
            ),
            MadeType(
                "AWS::Logs::LogGroup",
                "LogGroupName",
                self._log_group,
                self._set_retention,
                by("logs", "delete_log_group", "logGroupName"),
            ),
            MadeType("AWS::Logs::MetricFilter", "FilterName", self._metric_filter),
            MadeType(
                "AWS::SSM::Parameter", "Name", self._parameter, self._set_value, by("ssm", "delete_parameter", "Name")
            ),
        ]

    def _deleted_by(self, service: str, operation: str, argument: str) -> Callable[[str, Properties], object]:
        """Return what deletes a resource by a call that takes what `Ref` gives."""
        return lambda physical_id, _: getattr(self._clients.of_person(service), operation)(**{argument: physical_id})

    def _version(self, _name: str, properties: Properties) -> MadeResource:
        function = properties["FunctionName"]
        number = self._published[function] = self._published.get(function, 0) + 1
        arn = self._place.arn("lambda", f"function:{function}:{number}")
        return MadeResource(arn, Version=str(number), FunctionArn=arn)

    def _alias(self, _name: str, properties: Properties) -> MadeResource:
        arn = self._place.arn("lambda", f"function:{properties['FunctionName']}:{properties['Name']}")
        return MadeResource(arn, AliasArn=arn)

    def _state_machine(self, name: str, properties: Properties) -> MadeResource:
        made = self._clients.of_person("stepfunctions").create_state_machine(
            name=name,
            definition=definitions.text_of(name, properties),
            roleArn=properties["RoleArn"],
            type=properties.get("StateMachineType", "STANDARD"),
        )
        return MadeResource(made["stateMachineArn"], Arn=made["stateMachineArn"], Name=name)

    def _change_state_machine(self, arn: str, properties: Properties) -> None:
        self._clients.of_person("stepfunctions").update_state_machine(
            stateMachineArn=arn,
            definition=definitions.text_of(arn.rpartition(":")[2], properties),
            roleArn=properties["RoleArn"],
        )

    def _event_bus(self, _name: str, properties: Properties) -> MadeResource:
        name = properties["Name"]
        arn = self._clients.of_person("events").create_event_bus(Name=name)["EventBusArn"]
        return MadeResource(name, Arn=arn, Name=name)

    def _schedule(self, name: str, properties: Properties) -> MadeResource:
        made = self._clients.of_person("scheduler").create_schedule(**(properties | {"Name": name}))
        return MadeResource(name, Arn=made["ScheduleArn"])

    def _change_schedule(self, name: str, properties: Properties) -> None:
        self._clients.of_person("scheduler").update_schedule(**(properties | {"Name": name}))

    def _delete_schedule(self, name: str, properties: Properties) -> None:
        client = self._clients.of_person("scheduler")
        try:
            client.delete_schedule(Name=name, GroupName=properties.get("GroupName", "default"))
        except client.exceptions.ResourceNotFoundException:
            return  # it went with its group

    def _schedule_group(self, name: str, properties: Properties) -> MadeResource:
        made = self._clients.of_person("scheduler").create_schedule_group(**(properties | {"Name": name}))
        return MadeResource(name, Arn=made["ScheduleGroupArn"])

    def _delete_schedule_group(self, name: str, _properties: Properties) -> None:
        """Delete a group with every schedule in it, those that runs made too, as Scheduler does."""
        client = self._clients.of_person("scheduler")
        for schedule in client.list_schedules(GroupName=name)["Schedules"]:
            client.delete_schedule(Name=schedule["Name"], GroupName=name)
        client.delete_schedule_group(Name=name)

    def _alarm(self, name: str, properties: Properties) -> MadeResource:
        threshold = {"Threshold": float(properties["Threshold"])} if "Threshold" in properties else {}  # may be text
        self._clients.of_person("cloudwatch").put_metric_alarm(**(properties | {"AlarmName": name} | threshold))
        return MadeResource(name, Arn=self._place.arn("cloudwatch", f"alarm:{name}"))

    def _delete_alarm(self, name: str, _properties: Properties) -> None:
        self._clients.of_person("cloudwatch").delete_alarms(AlarmNames=[name])

    def _board(self, name: str, properties: Properties) -> MadeResource:
        body = properties["DashboardBody"]
        text = body if isinstance(body, str) else json.dumps(body)
        self._clients.of_person("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=text)
        return MadeResource(name)

    def _delete_board(self, name: str, _properties: Properties) -> None:
        self._clients.of_person("cloudwatch").delete_dashboards(DashboardNames=[name])

    def _subscription(self, _name: str, properties: Properties) -> MadeResource:
        made = self._clients.of_person("sns").subscribe(
            TopicArn=properties["TopicArn"],
            Protocol=properties["Protocol"],
            Endpoint=properties["Endpoint"],
            Attributes={
                key: value if isinstance(value, str) else json.dumps(value)
                for key, value in properties.items()
                if key in _SUBSCRIPTION_ATTRIBUTES
            },
            ReturnSubscriptionArn=True,
        )
        return MadeResource(made["SubscriptionArn"])

    def _log_group(self, name: str, properties: Properties) -> MadeResource:
        """Make a log group; its `Arn` ends with `:*`, as CloudFormation gives it, which moto leaves out."""
        self._clients.of_person("logs").create_log_group(logGroupName=name)
        if "RetentionInDays" in properties:
            self._set_retention(name, properties)
        return MadeResource(name, Arn=self._place.arn("logs", f"log-group:{name}:*"))

    def _set_retention(self, name: str, properties: Properties) -> None:
        self._clients.of_person("logs").put_retention_policy(
            logGroupName=name, retentionInDays=int(properties["RetentionInDays"])
        )

    def _metric_filter(self, name: str, properties: Properties) -> MadeResource:
        named = _camel_case(properties) | {"filterName": name}
        named["metricTransformations"] = [_camel_case(part) for part in named["metricTransformations"]]
        self._clients.of_person("logs").put_metric_filter(**named)
        return MadeResource(name)

    def _parameter(self, name: str, properties: Properties) -> MadeResource:
        """Make a parameter; one without a name gets one, which moto's CloudFormation forgets."""
        given = {key: properties[key] for key in ("Type", "Value", "Description") if key in properties}
        self._clients.of_person("ssm").put_parameter(Name=name, **given)
        return MadeResource(name, Type=properties["Type"], Value=properties["Value"])

    def _set_value(self, name: str, properties: Properties) -> None:
        changed = {"Type": properties["Type"], "Value": properties["Value"]}
        self._clients.of_person("ssm").put_parameter(Name=name, **changed, Overwrite=True)


def _camel_case(properties: Properties) -> Properties:
    """Write the names of properties as CloudWatch Logs' API does."""
    return {key[0].lower() + key[1:]: value for key, value in properties.items()}
