"""Compose `publish_usage`."""

from functools import cache, partial

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.eventbridge import Bus
from taskgov.adapters.failures import ReportedFailures
from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.adapters.s3 import Bucket, RememberingBucket
from taskgov.adapters.sns import Topic, TopicsOfTeams
from taskgov.bootstrap import aws
from taskgov.bootstrap.backends import backends
from taskgov.bootstrap.take_snapshot import kueue_follower, take_snapshot
from taskgov.config import Settings
from taskgov.observability import logger
from taskgov.services.follow_workloads import FollowWorkloads
from taskgov.services.governed_clusters import GovernedClusters
from taskgov.services.keep_work import KeepWork, period_of
from taskgov.services.named_owners import NamedOwners
from taskgov.services.publish_usage import PublishUsage
from taskgov.services.series_cap import SeriesCap
from taskgov.services.tell_teams import TellTeams
from taskgov.snapshot.model import Snapshot
from taskgov.work.owners import Naming


class PublishUsageSettings(Settings):
    table_name: str
    bucket_name: str
    bus_name: str
    topic_arn: str
    team_topics: str
    clusters_without_document: str
    max_series: int
    publish_schedule: str
    work_owners: Naming
    work_owner_label: str


def _write_pages(documents: Bucket, failures: ReportedFailures, snapshot: Snapshot) -> None:
    from taskgov.services.team_pages import TeamPages  # noqa: PLC0415 - what the schedule of each minute never needs

    TeamPages(documents, failures).write(snapshot)


@cache
def publish_usage() -> PublishUsage:
    """Return the use case over AWS and the clusters' Kubernetes APIs."""
    settings = PublishUsageSettings.from_env()
    state = Table(aws.table(settings.table_name))
    documents = RememberingBucket(aws.s3(), settings.bucket_name)
    bus, clock = Bus(aws.events(), settings.bus_name), SystemClock()
    topics = TopicsOfTeams(aws.sns(), settings.team_topics)
    failures = ReportedFailures(logger, EmbeddedMetrics())
    owners = NamedOwners(documents, failures, clock, settings.work_owner_label, settings.work_owners)
    governed = GovernedClusters(documents, settings.clusters_without_document)
    return PublishUsage(
        take_snapshot=take_snapshot(state, documents),
        backends=backends(documents, governed),
        governed=governed,
        documents=documents,
        state=state,
        bus=bus,
        notices=Topic(aws.sns(), settings.topic_arn),
        meter=EmbeddedMetrics(),
        clock=clock,
        failures=failures,
        tell_teams=TellTeams(documents, state, bus, topics, clock),
        follow_workloads=FollowWorkloads(kueue_follower(owners.label), documents, EmbeddedMetrics(), clock, owners.of),
        keep_work=KeepWork(documents, failures, period_of(settings.publish_schedule)),
        write_pages=partial(_write_pages, documents, failures),
        cap=SeriesCap(documents, failures, settings.max_series),
    )
