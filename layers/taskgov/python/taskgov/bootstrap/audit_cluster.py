"""Compose `audit_cluster`."""

from functools import cache

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.adapters.s3 import Bucket
from taskgov.adapters.sns import Topic
from taskgov.bootstrap import aws
from taskgov.bootstrap.take_snapshot import take_snapshot
from taskgov.config import Settings
from taskgov.services.audit_cluster import AuditCluster


class AuditClusterSettings(Settings):
    table_name: str
    bucket_name: str
    topic_arn: str


@cache
def audit_cluster() -> AuditCluster:
    """Return the use case over AWS and the cluster's Kubernetes API."""
    settings = AuditClusterSettings.from_env()
    documents = Bucket(aws.s3(), settings.bucket_name)
    return AuditCluster(
        take_snapshot=take_snapshot(Table(aws.table(settings.table_name)), documents),
        documents=documents,
        notices=Topic(aws.sns(), settings.topic_arn),
        meter=EmbeddedMetrics(),
    )
