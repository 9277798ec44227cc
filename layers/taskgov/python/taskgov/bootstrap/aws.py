"""AWS clients, made once for the lifetime of the function's process."""

from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_dynamodb.service_resource import Table as DynamoDBTable
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

CONFIG = Config(
    connect_timeout=3,
    read_timeout=10,  # several tries must fit into a function's time
    retries={"mode": "standard", "total_max_attempts": 4},
)


@cache
def sagemaker() -> "SageMakerClient":
    """Return the SageMaker client."""
    return boto3.client("sagemaker", config=CONFIG)


@cache
def eks() -> "EKSClient":
    """Return the EKS client."""
    return boto3.client("eks", config=CONFIG)


@cache
def ec2() -> "EC2Client":
    """Return the EC2 client."""
    return boto3.client("ec2", config=CONFIG)


@cache
def auto_scaling() -> "AutoScalingClient":
    """Return the EC2 Auto Scaling client."""
    return boto3.client("autoscaling", config=CONFIG)


@cache
def s3() -> "S3Client":
    """Return the S3 client."""
    return boto3.client("s3", config=CONFIG)


@cache
def table(name: str) -> "DynamoDBTable":
    """Return the DynamoDB table."""
    return boto3.resource("dynamodb", config=CONFIG).Table(name)


@cache
def stepfunctions() -> "SFNClient":
    """Return the Step Functions client."""
    return boto3.client("stepfunctions", config=CONFIG)


@cache
def events() -> "EventBridgeClient":
    """Return the EventBridge client."""
    return boto3.client("events", config=CONFIG)


@cache
def sns() -> "SNSClient":
    """Return the SNS client."""
    return boto3.client("sns", config=CONFIG)


@cache
def sqs() -> "SQSClient":
    """Return the SQS client."""
    return boto3.client("sqs", config=CONFIG)


@cache
def ssm() -> Any:
    """Return the Systems Manager client, for its parameter store."""
    return boto3.client("ssm", config=CONFIG)
