"""Which types of resources are only written down? Those whose work the stack itself does, from their properties.

Functions, event source mappings, addresses, deployment groups, policies.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from taskgov_embedded.cloudformation.made_resource import MadeResource, MadeType, Properties

if TYPE_CHECKING:
    from taskgov_embedded.place import Place

_BY_NAME = {
    "AWS::CodeDeploy::Application": "ApplicationName",
    "AWS::CodeDeploy::DeploymentGroup": "DeploymentGroupName",
    "AWS::Lambda::EventInvokeConfig": None,
    "AWS::Lambda::Permission": None,
    "AWS::ApiGatewayV2::Stage": None,
    "AWS::SQS::QueuePolicy": None,
    "AWS::SNS::TopicPolicy": None,
    "AWS::S3::BucketPolicy": None,
    "AWS::Events::EventBusPolicy": None,
    "AWS::Logs::ResourcePolicy": None,
    "AWS::IAM::Policy": "PolicyName",
}
"""Types without attributes, whose name `Ref` gives, with the property that holds it."""


def recorded_types(place: Place) -> list[MadeType]:
    """Return the types that are only written down, with what `Ref` and `Fn::GetAtt` give."""

    def function(name: str, _properties: Properties) -> MadeResource:
        return MadeResource(name, Arn=place.arn("lambda", f"function:{name}"))

    def layer(name: str, _properties: Properties) -> MadeResource:
        return MadeResource(place.arn("lambda", f"layer:{name}:1"))

    def url(name: str, _properties: Properties) -> MadeResource:
        address = f"https://{_id(name, 32)}.lambda-url.{place.region}.on.aws/"
        return MadeResource(address, FunctionUrl=address)

    def managed_policy(name: str, _properties: Properties) -> MadeResource:
        return MadeResource(f"arn:{place.partition}:iam::{place.account}:policy/{name}")

    def composite_alarm(name: str, _properties: Properties) -> MadeResource:
        return MadeResource(name, Arn=place.arn("cloudwatch", f"alarm:{name}"))

    return [
        *(
            MadeType(kind, name_property, lambda name, _: MadeResource(name))
            for kind, name_property in _BY_NAME.items()
        ),
        MadeType("AWS::Lambda::Function", "FunctionName", function),
        MadeType("AWS::Lambda::LayerVersion", "LayerName", layer),
        MadeType("AWS::Lambda::EventSourceMapping", None, lambda name, _: MadeResource(name, Id=name)),
        MadeType("AWS::Lambda::Url", None, url),
        MadeType("AWS::ApiGatewayV2::Api", None, lambda name, _: MadeResource(_id(name, 10), ApiId=_id(name, 10))),
        MadeType("AWS::ApiGatewayV2::Integration", None, lambda name, _: MadeResource(_id(name, 7))),
        MadeType("AWS::ApiGatewayV2::Route", None, lambda name, _: MadeResource(_id(name, 7))),
        MadeType("AWS::IAM::ManagedPolicy", "ManagedPolicyName", managed_policy),
        MadeType("AWS::CloudWatch::CompositeAlarm", "AlarmName", composite_alarm),
    ]


def _id(name: str, length: int) -> str:
    """Return an identifier as AWS draws them, the same for the same name."""
    return hashlib.sha256(name.encode()).hexdigest()[:length]
