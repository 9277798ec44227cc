"""Which services does the stack use, and has the Region endpoints of them? By botocore's endpoint data, offline."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import boto3

from taskgov.policy.backends import Backend

if TYPE_CHECKING:
    from taskgov_cli.preflight.template import Template

SERVICE_OF: Final = {
    "AWS::ApiGatewayV2": "apigatewayv2",
    "AWS::CloudWatch": "cloudwatch",
    "AWS::DynamoDB": "dynamodb",
    "AWS::Events": "events",
    "AWS::KMS": "kms",
    "AWS::Lambda": "lambda",
    "AWS::Logs": "logs",
    "AWS::S3": "s3",
    "AWS::SNS": "sns",
    "AWS::SQS": "sqs",
    "AWS::SSM": "ssm",
    "AWS::Scheduler": "scheduler",
    "AWS::Serverless": "lambda",
    "AWS::StepFunctions": "stepfunctions",
}
"""botocore's service for the types of a namespace of CloudFormation; IAM has one endpoint for a whole partition."""
BESIDE: Final = ("cloudformation", "codedeploy", "sts", "xray")
"""What the stack uses beside its resources: it is deployed, versions are exchanged, functions are traced."""
OF_BACKEND: Final = {Backend.SAGEMAKER: ("sagemaker", "eks", "cloudtrail"), Backend.KUEUE: ("eks", "ec2")}


def services(template: Template, backend: Backend) -> tuple[str, ...]:
    """Return the services that the stack needs for the clusters of a backend, in botocore's names, sorted.

    Raises KeyError for a namespace of CloudFormation that is not known here.
    """
    namespaces = {kind.rpartition("::")[0] for kind in template.types()} - {"AWS::IAM"}
    return tuple(sorted({*(SERVICE_OF[namespace] for namespace in namespaces), *BESIDE, *OF_BACKEND[backend]}))


def without_endpoint(wanted: tuple[str, ...], partition: str, region: str) -> tuple[str, ...]:
    """Return the services that have no endpoint in the Region, in the data of this botocore.

    >>> without_endpoint(("lambda", "sagemaker"), "aws-iso", "us-iso-west-1")
    ('sagemaker',)
    """
    session = boto3.Session()
    return tuple(name for name in wanted if region not in session.get_available_regions(name, partition))


def partition_of(region: str) -> str:
    """Return the partition of a Region, by its name where botocore does not know it."""
    return boto3.Session().get_partition_for_region(region)
