"""Create the resources of a translated template in the emulated account.

moto's CloudFormation resolves intrinsic functions, conditions and the order of creation, and creates what it does well.
What it does not know, or gets wrong, is only written down (`recorded`) or made through its service's API
(`made_by_api`). Any other unknown type is an error. `resolved` holds the properties of everything, with all references
resolved.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import moto.backends  # noqa: F401 moto finds its CloudFormation models among what is imported
from moto.cloudformation import models, parsing
from moto.cloudformation.models import cloudformation_backends

from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.cloudformation.made_by_api import MadeByApi
from taskgov_embedded.cloudformation.recorded import recorded_types

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov_embedded.aws_api.aws_requests import Call
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


def _without_no_value(value: Any) -> Any:
    """Leave out what `AWS::NoValue` stands for in a list, where moto keeps a null."""
    if isinstance(value, list):
        return [_without_no_value(item) for item in value if item is not None]
    if isinstance(value, dict):
        return {key: _without_no_value(item) for key, item in value.items()}
    return value


class Resources:
    """The resources of one stack."""

    def __init__(self, place: Place, clients: Clients, patches: Patches) -> None:
        self.resolved: dict[str, Resolved] = {}
        self.outputs: dict[str, str] = {}
        self._place = place
        self._clients = clients
        self._patches = patches
        made_here = (*recorded_types(place), *MadeByApi(place, clients).types())
        self._made_here = {made.kind: made for made in made_here}

    def describe(self, call: Call) -> Mapping[str, Any] | None:
        """Answer DescribeStackResource, at which moto fails for a stack of which it has not made every resource."""
        if call.params["StackName"] != STACK_NAME:
            return None
        try:
            found = self.resolved[call.params["LogicalResourceId"]]
        except KeyError as error:
            message = f"Resource {error.args[0]} does not exist for stack {STACK_NAME}"
            raise AwsError("ValidationError", message) from error
        about = {
            "StackName": STACK_NAME,
            "StackId": self._place.stacks[STACK_NAME],
            "LogicalResourceId": found.logical_id,
            "PhysicalResourceId": found.physical_id,
            "ResourceType": found.kind,
            "ResourceStatus": "CREATE_COMPLETE",
            "LastUpdatedTimestamp": call.time,
        }
        return {"StackResourceDetail": about}

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
        unknown = sorted(kind for kind in translated.types() if not self._known(kind))
        if unknown:
            raise UnsupportedResourceError(f"the embedded stack cannot make {', '.join(unknown)}")

    def of(self, kind: str) -> list[Resolved]:
        """Return the resources of a type, in the order of their creation."""
        return [resolved for resolved in self.resolved.values() if resolved.kind == kind]

    def physical(self, logical_id: str) -> str:
        """Return the physical id (what `Ref` gives) of a logical one."""
        return self.resolved[logical_id].physical_id

    def _known(self, kind: str) -> bool:
        return kind in self._made_here or kind in parsing.get_model_map()

    @contextmanager
    def in_moto(self) -> Iterator[None]:
        """Let moto's CloudFormation ask here first: for a type's maker, for names, and for resolved properties."""
        with self._patches.within():
            self._patch_moto()
            yield

    def _patch_moto(self) -> None:
        own_class = parsing.resource_class_from_type

        def class_from_type(kind: str) -> Any:
            return self._made_here.get(kind) or own_class(kind)

        def parse(logical_id: str, resource: dict[str, Any], known: Any) -> Any:
            maker, resolved, kind = parsing.parse_resource(resource, known)
            named = resolved["Properties"].get(self._name_property(kind))
            name = named or physical_name(kind, known["AWS::StackName"], logical_id)
            properties = _without_no_value(json.loads(json.dumps(resolved["Properties"])))
            self.resolved[logical_id] = Resolved(logical_id, kind, properties, name)
            return maker, resolved | ({"Properties": properties} if kind in self._made_here else {}), name

        why = "moto's CloudFormation does not know all types, and has no way to add one"
        self._patches.replace(parsing, "resource_class_from_type", class_from_type, why)
        why = "resolved properties are needed here, and names that are the same in each run"
        self._patches.replace(parsing, "parse_resource_and_generate_name", parse, why)
        why = "speed: the template is JSON; moto reads it as YAML, which takes a second for a large one"
        self._patches.replace(models.Stack, "parse_template", staticmethod(json.loads), why)

    def _name_property(self, kind: str) -> str | None:
        """Return the property that names a resource of a type."""
        made = self._made_here.get(kind)
        named: str | None = parsing.resource_name_property_from_type(kind) if made is None else made.name_property
        return named

    def read_back(self) -> None:
        """Take over the physical ids and the outputs of moto."""
        client = self._clients.of_person("cloudformation")
        for page in client.get_paginator("list_stack_resources").paginate(StackName=STACK_NAME):
            for summary in page["StackResourceSummaries"]:
                if summary.get("PhysicalResourceId"):
                    self.resolved[summary["LogicalResourceId"]].physical_id = summary["PhysicalResourceId"]
        outputs = client.describe_stacks(StackName=STACK_NAME)["Stacks"][0].get("Outputs", [])
        self.outputs = {output["OutputKey"]: output["OutputValue"] for output in outputs}

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
            schema = {key["KeyType"]: key["AttributeName"] for key in table.properties["KeySchema"]}
            self._place.hash_keys[table.physical_id] = schema["HASH"]
        for encrypted in (*self.of("AWS::SNS::Topic"), *self.of("AWS::SQS::Queue")):
            key = encrypted.properties.get("KmsMasterKeyId", "alias/aws/")
            if "alias/aws/" not in key:
                name = encrypted.physical_id.rpartition("/")[2]
                arn = name if name.startswith("arn:") else self._place.arn("sqs", name)
                self._place.kms_keys[arn] = self._key_arn(key)
        for machine in self.of("AWS::StepFunctions::StateMachine"):
            encryption = machine.properties.get("EncryptionConfiguration", {})
            if "KmsKeyId" in encryption:
                self._place.kms_keys[machine.physical_id] = self._key_arn(encryption["KmsKeyId"])

    def _key_arn(self, key: str) -> str:
        return key if key.startswith("arn:") else self._place.arn("kms", f"key/{key}")


def physical_name(kind: str, stack_name: str, logical_id: str) -> str:
    """Name a resource as CloudFormation does, but the same in every run.

    >>> physical_name("AWS::S3::Bucket", "taskgov", "Reports")
    'taskgov-reports-fcd427c7a37a'
    """
    suffix = hashlib.sha256(f"{stack_name}/{logical_id}".encode()).hexdigest()[:12]
    name = f"{stack_name}-{logical_id}"
    return f"{name[:50]}-{suffix}".lower() if kind == "AWS::S3::Bucket" else f"{name[:51]}-{suffix.upper()}"
