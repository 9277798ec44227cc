"""Create the resources of a translated template in the emulated account.

moto's CloudFormation resolves intrinsic functions, conditions and the order of creation, and creates what it does well.
The types below it does not know, or gets wrong: `_RECORDED` ones are only written down, because the stack itself does
their work (functions, event source mappings, resource policies); `_MADE_BY_API` ones are made through their service's
API. Any other unknown type is an error. `resolved` holds the properties of everything, with all references resolved.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import moto.backends  # noqa: F401 moto finds its CloudFormation models among what is imported
from moto.cloudformation import models, parsing
from moto.cloudformation.exceptions import UnformattedGetAttTemplateException
from moto.cloudformation.models import cloudformation_backends

from taskgov_embedded.cloudformation.changed_by_api import ChangedByApi
from taskgov_embedded.stepfunctions import definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskgov_embedded.aws_api.clients import Clients
    from taskgov_embedded.aws_api.patches import Patches
    from taskgov_embedded.cloudformation.template import Translated
    from taskgov_embedded.place import Place

STACK_NAME = "taskgov"


class UnsupportedResourceError(ValueError):
    """The template has a resource type that nothing here can make."""


@dataclass(slots=True)
class Resolved:
    """One created resource: its properties without intrinsic functions, and what `Ref` gives."""

    logical_id: str
    kind: str
    properties: dict[str, Any]
    physical_id: str


class MadeResource:
    """What moto's CloudFormation asks of a resource: what `Ref` and `Fn::GetAtt` give."""

    def __init__(self, physical_id: str, attributes: Mapping[str, str], kind: str) -> None:
        self.physical_resource_id = physical_id
        self.type = kind
        self.cf_resource_type = kind
        self.logical_resource_id = ""
        self._attributes = attributes

    def is_created(self) -> bool:
        """Say yes: nothing here takes time."""
        return True

    def has_cfn_attr(self, name: str) -> bool:
        """Say whether the type has the attribute; a typo in a template must not pass."""
        return name in self._attributes

    def get_cfn_attribute(self, name: str) -> str:
        """Return what `Fn::GetAtt` gives."""
        if name not in self._attributes:
            raise UnformattedGetAttTemplateException
        return self._attributes[name]


def _url_name(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:32]


_RECORDED: dict[str, tuple[str | None, Callable[[Place, str, str], tuple[str, dict[str, str]]]]] = {
    # type: (property that names it, (place, name, logical id) -> (Ref, attributes))
    "AWS::Lambda::Function": (
        "FunctionName",
        lambda place, name, _: (name, {"Arn": place.arn("lambda", f"function:{name}")}),
    ),
    "AWS::Lambda::LayerVersion": (
        "LayerName",
        lambda place, name, _: (place.arn("lambda", f"layer:{name}:1"), {}),
    ),
    "AWS::CodeDeploy::Application": ("ApplicationName", lambda _, name, __: (name, {})),
    "AWS::CodeDeploy::DeploymentGroup": ("DeploymentGroupName", lambda _, name, __: (name, {})),
    "AWS::Lambda::EventSourceMapping": (None, lambda _, name, __: (name, {"Id": name})),
    "AWS::Lambda::EventInvokeConfig": (None, lambda _, name, __: (name, {})),
    "AWS::Lambda::Permission": (None, lambda _, name, __: (name, {})),
    "AWS::Lambda::Url": (
        None,
        lambda place, name, _: (
            f"https://{_url_name(name)}.lambda-url.{place.region}.on.aws/",
            {"FunctionUrl": f"https://{_url_name(name)}.lambda-url.{place.region}.on.aws/"},
        ),
    ),
    "AWS::ApiGatewayV2::Api": (None, lambda _, name, __: (_url_name(name)[:10], {"ApiId": _url_name(name)[:10]})),
    "AWS::ApiGatewayV2::Integration": (None, lambda _, name, __: (_url_name(name)[:7], {})),
    "AWS::ApiGatewayV2::Route": (None, lambda _, name, __: (_url_name(name)[:7], {})),
    "AWS::ApiGatewayV2::Stage": (None, lambda _, name, __: (name, {})),
    "AWS::SQS::QueuePolicy": (None, lambda _, name, __: (name, {})),
    "AWS::SNS::TopicPolicy": (None, lambda _, name, __: (name, {})),
    "AWS::S3::BucketPolicy": (None, lambda _, name, __: (name, {})),
    "AWS::Events::EventBusPolicy": (None, lambda _, name, __: (name, {})),
    "AWS::Logs::ResourcePolicy": (None, lambda _, name, __: (name, {})),
    "AWS::IAM::Policy": ("PolicyName", lambda _, name, __: (name, {})),
    "AWS::IAM::ManagedPolicy": (
        "ManagedPolicyName",
        lambda place, name, _: (f"arn:{place.partition}:iam::{place.account}:policy/{name}", {}),
    ),
    "AWS::CloudWatch::CompositeAlarm": (
        "AlarmName",
        lambda place, name, _: (name, {"Arn": place.arn("cloudwatch", f"alarm:{name}")}),
    ),
}


def _without_no_value(value: Any) -> Any:
    """Leave out what `AWS::NoValue` stands for in a list, where moto keeps a null."""
    if isinstance(value, list):
        return [_without_no_value(one) for one in value if one is not None]
    if isinstance(value, dict):
        return {key: _without_no_value(one) for key, one in value.items()}
    return value


class Resources:
    """The resources of one stack."""

    def __init__(self, place: Place, clients: Clients, patches: Patches) -> None:
        self.resolved: dict[str, Resolved] = {}
        self.outputs: dict[str, str] = {}
        self._place = place
        self._clients = clients
        self._patches = patches
        self._published: dict[str, int] = {}
        self._by_api = ChangedByApi(clients)
        self._made_by_api: dict[str, tuple[str | None, Callable[[str, dict[str, Any]], MadeResource]]] = {
            "AWS::Lambda::Version": (None, self._version),
            "AWS::Lambda::Alias": (None, self._alias),
            "AWS::StepFunctions::StateMachine": ("StateMachineName", self._state_machine),
            "AWS::Events::EventBus": ("Name", self._event_bus),
            "AWS::Scheduler::Schedule": ("Name", self._schedule),
            "AWS::Scheduler::ScheduleGroup": ("Name", self._schedule_group),
            "AWS::CloudWatch::Alarm": ("AlarmName", self._alarm),
            "AWS::CloudWatch::Dashboard": ("DashboardName", self._dashboard),
            "AWS::SNS::Subscription": (None, self._subscription),
            "AWS::Logs::LogGroup": ("LogGroupName", self._log_group),
            "AWS::Logs::MetricFilter": ("FilterName", self._metric_filter),
            "AWS::SSM::Parameter": ("Name", self._parameter),
        }

    def create(self, translated: Translated, parameters: Mapping[str, str]) -> None:
        """Create everything in the template."""
        self.refuse_unknown(translated)
        with self.in_moto():
            # Not by a client: two hundred kilobytes would be quoted for a form, and unquoted, several times over.
            backend = cloudformation_backends[self._place.account][self._place.region]
            given = {key: str(value) for key, value in parameters.items()}
            made = backend.create_stack(STACK_NAME, json.dumps(translated.cfn), given)
            self._place.stacks[STACK_NAME] = made.stack_id
            self.read_back()
        self._complete_buckets()
        self.note_what_permissions_depend_on()

    def refuse_unknown(self, translated: Translated) -> None:
        """Raise for a type that nothing here can make."""
        unknown = sorted(one for one in translated.types() if not self._known(one))
        if unknown:
            raise UnsupportedResourceError(f"the embedded stack cannot make {', '.join(unknown)}")

    def of(self, kind: str) -> list[Resolved]:
        """Return the resources of a type, in the order of their creation."""
        return [one for one in self.resolved.values() if one.kind == kind]

    def physical(self, logical_id: str) -> str:
        """Return the physical id (what `Ref` gives) of a logical one."""
        return self.resolved[logical_id].physical_id

    def _known(self, kind: str) -> bool:
        return kind in _RECORDED or kind in self._made_by_api or kind in parsing.get_model_map()

    @contextmanager
    def in_moto(self) -> Iterator[None]:
        """Let moto's CloudFormation ask here first: for a type's maker, for names, and for resolved properties."""
        with self._patches.within():
            self._patch_moto()
            yield

    def _patch_moto(self) -> None:
        own_class = parsing.resource_class_from_type

        def class_from_type(kind: str) -> Any:
            return _Maker(kind, self._make, self._by_api) if self._is_ours(kind) else own_class(kind)

        def parse(logical_id: str, resource: dict[str, Any], known: Any) -> Any:
            maker, resolved, kind = parsing.parse_resource(resource, known)
            named = resolved["Properties"].get(self._name_property(kind))
            name = named or physical_name(kind, known["AWS::StackName"], logical_id)
            properties = _without_no_value(json.loads(json.dumps(resolved["Properties"])))
            self.resolved[logical_id] = Resolved(logical_id, kind, properties, name)
            return maker, resolved, name

        why = "moto's CloudFormation does not know all types, and has no way to add one"
        self._patches.replace(parsing, "resource_class_from_type", class_from_type, why)
        why = "resolved properties are needed here, and names that are the same in each run"
        self._patches.replace(parsing, "parse_resource_and_generate_name", parse, why)
        why = "speed: the template is JSON; moto reads it as YAML, which takes a second for a large one"
        self._patches.replace(models.Stack, "parse_template", staticmethod(json.loads), why)

    def _name_property(self, kind: str) -> str | None:
        """Return the property that names a resource of a type."""
        if kind in _RECORDED:
            return _RECORDED[kind][0]
        if kind in self._made_by_api:
            return self._made_by_api[kind][0]
        named: str | None = parsing.resource_name_property_from_type(kind)
        return named

    def _is_ours(self, kind: str) -> bool:
        return kind in _RECORDED or kind in self._made_by_api

    def _make(self, kind: str, name: str, properties: dict[str, Any], logical_id: str) -> MadeResource:
        if kind in self._made_by_api:
            return self._made_by_api[kind][1](name, properties)
        reference, attributes = _RECORDED[kind][1](self._place, name, logical_id)
        return MadeResource(reference, attributes, kind)

    def read_back(self) -> None:
        """Take over the physical ids and the outputs that moto knows."""
        client = self._clients.of_person("cloudformation")
        for page in client.get_paginator("list_stack_resources").paginate(StackName=STACK_NAME):
            for one in page["StackResourceSummaries"]:
                if one.get("PhysicalResourceId"):
                    self.resolved[one["LogicalResourceId"]].physical_id = one["PhysicalResourceId"]
        outputs = client.describe_stacks(StackName=STACK_NAME)["Stacks"][0].get("Outputs", [])
        self.outputs = {one["OutputKey"]: one["OutputValue"] for one in outputs}

    def _complete_buckets(self) -> None:
        """Switch on what moto's CloudFormation drops of a bucket: versions, and events to EventBridge."""
        s3 = self._clients.of_person("s3")
        for bucket in self.of("AWS::S3::Bucket"):
            versioning = bucket.properties.get("VersioningConfiguration")
            if versioning is not None:
                s3.put_bucket_versioning(Bucket=bucket.physical_id, VersioningConfiguration=versioning)
            notifications = bucket.properties.get("NotificationConfiguration", {})
            if "EventBridgeConfiguration" in notifications:
                s3.put_bucket_notification_configuration(
                    Bucket=bucket.physical_id, NotificationConfiguration={"EventBridgeConfiguration": {}}
                )

    def note_what_permissions_depend_on(self) -> None:
        """Say which keys there are: of tables, and those that encrypt; again after each update."""
        self._place.kms_keys.clear()
        for table in self.of("AWS::DynamoDB::Table"):
            schema = {one["KeyType"]: one["AttributeName"] for one in table.properties["KeySchema"]}
            self._place.hash_keys[table.physical_id] = schema["HASH"]
        for one in (*self.of("AWS::SNS::Topic"), *self.of("AWS::SQS::Queue")):
            key = one.properties.get("KmsMasterKeyId", "alias/aws/")
            if "alias/aws/" not in key:
                name = one.physical_id.rpartition("/")[2]
                arn = name if name.startswith("arn:") else self._place.arn("sqs", name)
                self._place.kms_keys[arn] = self._key_arn(key)
        for one in self.of("AWS::StepFunctions::StateMachine"):
            encryption = one.properties.get("EncryptionConfiguration", {})
            if "KmsKeyId" in encryption:
                self._place.kms_keys[one.physical_id] = self._key_arn(encryption["KmsKeyId"])

    def _key_arn(self, key: str) -> str:
        return key if key.startswith("arn:") else self._place.arn("kms", f"key/{key}")

    def _version(self, _name: str, properties: dict[str, Any]) -> MadeResource:
        function = properties["FunctionName"]
        number = self._published[function] = self._published.get(function, 0) + 1
        arn = self._place.arn("lambda", f"function:{function}:{number}")
        return MadeResource(arn, {"Version": str(number), "FunctionArn": arn}, "AWS::Lambda::Version")

    def _alias(self, _name: str, properties: dict[str, Any]) -> MadeResource:
        arn = self._place.arn("lambda", f"function:{properties['FunctionName']}:{properties['Name']}")
        return MadeResource(arn, {"AliasArn": arn}, "AWS::Lambda::Alias")

    def _state_machine(self, name: str, properties: dict[str, Any]) -> MadeResource:
        text = definitions.text_of(name, properties)
        made = self._clients.of_person("stepfunctions").create_state_machine(
            name=name,
            definition=text,
            roleArn=properties["RoleArn"],
            type=properties.get("StateMachineType", "STANDARD"),
        )
        arn = made["stateMachineArn"]
        return MadeResource(arn, {"Arn": arn, "Name": name}, "AWS::StepFunctions::StateMachine")

    def _event_bus(self, _name: str, properties: dict[str, Any]) -> MadeResource:
        name = properties["Name"]
        arn = self._clients.of_person("events").create_event_bus(Name=name)["EventBusArn"]
        return MadeResource(name, {"Arn": arn, "Name": name}, "AWS::Events::EventBus")

    def _schedule(self, name: str, properties: dict[str, Any]) -> MadeResource:
        made = self._clients.of_person("scheduler").create_schedule(**(properties | {"Name": name}))
        return MadeResource(name, {"Arn": made["ScheduleArn"]}, "AWS::Scheduler::Schedule")

    def _schedule_group(self, name: str, properties: dict[str, Any]) -> MadeResource:
        made = self._clients.of_person("scheduler").create_schedule_group(**(properties | {"Name": name}))
        return MadeResource(name, {"Arn": made["ScheduleGroupArn"]}, "AWS::Scheduler::ScheduleGroup")

    def _alarm(self, name: str, properties: dict[str, Any]) -> MadeResource:
        self._clients.of_person("cloudwatch").put_metric_alarm(**(properties | {"AlarmName": name}))
        arn = self._place.arn("cloudwatch", f"alarm:{name}")
        return MadeResource(name, {"Arn": arn}, "AWS::CloudWatch::Alarm")

    def _dashboard(self, name: str, properties: dict[str, Any]) -> MadeResource:
        body = properties["DashboardBody"]
        text = body if isinstance(body, str) else json.dumps(body)
        self._clients.of_person("cloudwatch").put_dashboard(DashboardName=name, DashboardBody=text)
        return MadeResource(name, {}, "AWS::CloudWatch::Dashboard")

    def _subscription(self, _name: str, properties: dict[str, Any]) -> MadeResource:
        made = self._clients.of_person("sns").subscribe(
            TopicArn=properties["TopicArn"],
            Protocol=properties["Protocol"],
            Endpoint=properties["Endpoint"],
            Attributes={
                key: value if isinstance(value, str) else json.dumps(value)
                for key, value in properties.items()
                if key in {"FilterPolicy", "FilterPolicyScope", "RawMessageDelivery", "RedrivePolicy"}
            },
            ReturnSubscriptionArn=True,
        )
        return MadeResource(made["SubscriptionArn"], {}, "AWS::SNS::Subscription")

    def _log_group(self, name: str, properties: dict[str, Any]) -> MadeResource:
        """Make a log group; its `Arn` ends with `:*`, as CloudFormation gives it, which moto leaves out."""
        logs = self._clients.of_person("logs")
        logs.create_log_group(logGroupName=name)
        if "RetentionInDays" in properties:
            logs.put_retention_policy(logGroupName=name, retentionInDays=int(properties["RetentionInDays"]))
        return MadeResource(name, {"Arn": self._place.arn("logs", f"log-group:{name}:*")}, "AWS::Logs::LogGroup")

    def _parameter(self, name: str, properties: dict[str, Any]) -> MadeResource:
        """Make a parameter; one without a name gets one, which moto's CloudFormation forgets."""
        given = {key: properties[key] for key in ("Type", "Value", "Description") if key in properties}
        self._clients.of_person("ssm").put_parameter(Name=name, **given)
        return MadeResource(name, {"Type": properties["Type"], "Value": properties["Value"]}, "AWS::SSM::Parameter")

    def _metric_filter(self, name: str, properties: dict[str, Any]) -> MadeResource:
        named = {key[0].lower() + key[1:]: value for key, value in properties.items() if key != "FilterName"}
        named["metricTransformations"] = [
            {key[0].lower() + key[1:]: value for key, value in one.items()} for one in named["metricTransformations"]
        ]
        self._clients.of_person("logs").put_metric_filter(filterName=name, **named)
        return MadeResource(name, {}, "AWS::Logs::MetricFilter")


class _Maker:
    """Stand in for a model class of moto's CloudFormation."""

    def __init__(
        self, kind: str, make: Callable[[str, str, dict[str, Any], str], MadeResource], by_api: ChangedByApi
    ) -> None:
        self._kind = kind
        self._make = make
        self._by_api = by_api

    def create_from_cloudformation_json(
        self, name: str, resource: dict[str, Any], _account: str, _region: str, **about: Any
    ) -> MadeResource:
        return self._make(self._kind, name, resource["Properties"], about["LogicalId"])

    def update_from_cloudformation_json(self, original_resource: Any, cloudformation_json: Any, **_about: Any) -> Any:
        """Bring a resource to its new properties; what is only written down is it already."""
        self._by_api.update(self._kind, original_resource.physical_resource_id, cloudformation_json["Properties"])
        return original_resource

    def delete_from_cloudformation_json(self, name: str, resource: dict[str, Any], *_where: str) -> None:
        """Delete a resource; what is only written down is forgotten with the stack."""
        self._by_api.delete(self._kind, name, resource["Properties"])

    def has_cfn_attr(self, _name: str) -> bool:
        """Leave it to the resource, once it is made: that refuses an attribute that its type has not."""
        return True


def physical_name(kind: str, stack_name: str, logical_id: str) -> str:
    """Name a resource as CloudFormation does, but the same in every run.

    >>> physical_name("AWS::S3::Bucket", "taskgov", "Reports")
    'taskgov-reports-fcd427c7a37a'
    """
    suffix = hashlib.sha256(f"{stack_name}/{logical_id}".encode()).hexdigest()[:12]
    name = f"{stack_name}-{logical_id}"
    return f"{name[:50]}-{suffix}".lower() if kind == "AWS::S3::Bucket" else f"{name[:51]}-{suffix.upper()}"
