"""Compose `receive_event`."""

from functools import cache

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.s3 import Bucket
from taskgov.adapters.stepfunctions import StateMachine
from taskgov.bootstrap import aws
from taskgov.bootstrap.backends import backends
from taskgov.config import Settings
from taskgov.services.governed_clusters import GovernedClusters
from taskgov.services.receive_event import ReceiveEvent


class ReceiveEventSettings(Settings):
    table_name: str
    bucket_name: str
    reconcile_arn: str
    own_role_arn: str
    clusters_without_document: str


@cache
def receive_event() -> ReceiveEvent:
    """Return the use case over AWS."""
    settings = ReceiveEventSettings.from_env()
    documents = Bucket(aws.s3(), settings.bucket_name)
    return ReceiveEvent(
        backends=backends(documents, GovernedClusters(documents, settings.clusters_without_document)),
        state=Table(aws.table(settings.table_name)),
        workflow=StateMachine(aws.stepfunctions(), settings.reconcile_arn),
        clock=SystemClock(),
        own_role_arn=settings.own_role_arn,
    )
