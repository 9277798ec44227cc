"""The deployed stack that a command uses: its table, bucket and bus, found by the outputs of the stack."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import boto3
import typer

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.errors import translated
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap.aws import CONFIG
from taskgov.bootstrap.backends import backends
from taskgov.contracts.orders import PLAN_ID
from taskgov.hyperpod.cluster_arn import cluster_arn
from taskgov_cli import settings
from taskgov_cli.cluster_names import suggesting
from taskgov_cli.output import NO, print_error
from taskgov_cli.snapshots import reported
from taskgov_cli.stack_outputs import stack_outputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_dynamodb.service_resource import Table as DynamoDBTable

    from taskgov.ports import ClusterBackend

StackName = Annotated[str, typer.Option("--stack", help="CloudFormation stack of taskgov.", envvar=settings.STACK)]
Cluster = Annotated[
    str, typer.Argument(help="HyperPod or EKS cluster, by name or ARN.", metavar="CLUSTER", envvar=settings.CLUSTER)
]
OfCluster = Annotated[
    str | None, typer.Option("--cluster", "-c", help="The plan's cluster; default: all are searched.", metavar="NAME")
]


def plan_id_of(text: str) -> str:
    """Return the id of a plan. Raises `typer.BadParameter` for any other text."""
    if not PLAN_ID.fullmatch(text):
        raise typer.BadParameter(
            f"{text!r} is not the id of a plan, such as plan-0123456789abcdef; they are in: taskgov history CLUSTER"
        )
    return text


PlanId = Annotated[
    str,
    typer.Argument(
        help="The plan, as the notice or `taskgov history` names it.", metavar="PLAN_ID", callback=plan_id_of
    ),
]


class RefusedError(Exception):
    """The request cannot be met at present; the message says why, and what to do next."""


@dataclass(frozen=True, slots=True)
class Deployed:
    """One stack of taskgov, reached with the credentials of the environment."""

    table: DynamoDBTable
    bucket_name: str
    bus_name: str
    entry_url: str
    """Where signed orders go (`taskgov_cli.orders`)."""
    state: Table
    documents: Bucket
    backends: ClusterBackend
    needs_approver: bool
    """Whether the stack names approvers (parameter `Approvers`)."""

    def arn_of(self, cluster: str) -> str:
        """Return the ARN of a cluster, given by name or ARN. Raises RefusedError for another ARN, GovernanceError."""
        if cluster.startswith("arn:"):
            try:
                return cluster_arn(cluster)
            except ValueError as error:
                raise RefusedError(str(error)) from error
        with suggesting(cluster):
            return str(self.backends.describe_cluster(cluster)["ClusterArn"])

    def name_of(self, cluster: str) -> str:
        """Return the name of a cluster, given by name or ARN. Raises RefusedError for another ARN, GovernanceError."""
        return str(self.backends.describe_cluster(self.arn_of(cluster))["ClusterName"])

    def arns(self, cluster: str | None) -> list[str]:
        """Return the ARN of the cluster, or of all clusters of the account and Region. Raises GovernanceError."""
        return self.backends.clusters() if cluster is None else [self.arn_of(cluster)]


def deployed(stack: str) -> Deployed:
    """Return the stack. Raises GovernanceError when there is none of this name, or it is not taskgov's."""
    cloudformation = boto3.client("cloudformation", config=CONFIG)
    outputs = stack_outputs(cloudformation, stack, "TableName", "BucketName", "BusName", "OrderEntryUrl", "Approvers")
    documents = Bucket(boto3.client("s3", config=CONFIG), outputs["BucketName"])
    table = boto3.resource("dynamodb", config=CONFIG).Table(outputs["TableName"])
    return Deployed(
        table=table,
        bucket_name=outputs["BucketName"],
        bus_name=outputs["BusName"],
        entry_url=outputs["OrderEntryUrl"],
        state=Table(table),
        documents=documents,
        backends=backends(documents),
        needs_approver=outputs["Approvers"] != "none",
    )


def caller() -> str:
    """Return who runs this command: the ARN of the user, or of the role's session. Raises GovernanceError."""
    with translated("ask STS who you are"):
        return boto3.client("sts", config=CONFIG).get_caller_identity()["Arn"]


@contextmanager
def told() -> Iterator[None]:
    """End the command with a sentence: exit code 1 for what was refused, 3 when AWS could not be reached."""
    try:
        with reported():
            yield
    except RefusedError as refusal:
        print_error("Refused", refusal)
        raise typer.Exit(NO) from refusal
