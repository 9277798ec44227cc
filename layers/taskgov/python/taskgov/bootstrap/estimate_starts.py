"""Compose `estimate_starts`."""

import time
from functools import cache

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.failures import ReportedFailures
from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.adapters.s3 import RememberingBucket
from taskgov.bootstrap import aws
from taskgov.bootstrap.backends import backends
from taskgov.bootstrap.take_snapshot import kueue_follower
from taskgov.config import Settings
from taskgov.observability import logger
from taskgov.services.estimate_starts import EstimateStarts
from taskgov.services.read_queue import ReadQueue
from taskgov.services.work_record import RecordedWork


class EstimateStartsSettings(Settings):
    bucket_name: str
    history_days: int


@cache
def estimate_starts() -> EstimateStarts:
    """Return the use case over AWS and the clusters' Kubernetes APIs."""
    settings = EstimateStartsSettings.from_env()
    documents = RememberingBucket(aws.s3(), settings.bucket_name)
    kubernetes = kueue_follower(also="")
    return EstimateStarts(
        read_queue=ReadQueue(backends(documents), kubernetes, kubernetes, SystemClock(), documents),
        documents=documents,
        work=RecordedWork(documents),
        failures=ReportedFailures(logger, EmbeddedMetrics()),
        processor_seconds=time.process_time,
        keep_days=settings.history_days,
    )
