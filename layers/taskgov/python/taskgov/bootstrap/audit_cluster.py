"""Compose `audit_cluster`."""

from functools import cache
from time import monotonic

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.failures import ReportedFailures
from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.adapters.s3 import Bucket
from taskgov.adapters.sns import Topic, TopicsOfTeams
from taskgov.bootstrap import aws
from taskgov.bootstrap.take_snapshot import take_snapshot
from taskgov.config import Settings
from taskgov.observability import logger
from taskgov.services.advise_quotas import AdviseQuotas
from taskgov.services.audit_cluster import AuditCluster


class AuditClusterSettings(Settings):
    table_name: str
    bucket_name: str
    topic_arn: str
    team_topics: str
    """How the ARNs of teams' topics begin."""


@cache
def audit_cluster() -> AuditCluster:
    """Return the use case over AWS and the cluster's Kubernetes API."""
    settings = AuditClusterSettings.from_env()
    documents = Bucket(aws.s3(), settings.bucket_name)
    state = Table(aws.table(settings.table_name))
    failures = ReportedFailures(logger, EmbeddedMetrics())
    return AuditCluster(
        take_snapshot=take_snapshot(state, documents),
        documents=documents,
        state=state,
        notices=Topic(aws.sns(), settings.topic_arn),
        team_topics=TopicsOfTeams(aws.sns(), settings.team_topics),
        meter=EmbeddedMetrics(),
        advise=AdviseQuotas(documents, failures, monotonic),
        failures=failures,
    )
