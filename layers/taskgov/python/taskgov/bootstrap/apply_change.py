"""Compose `apply_change`."""

from functools import cache

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap import aws
from taskgov.bootstrap.backends import backends
from taskgov.config import Settings
from taskgov.services.apply_change import ApplyChange, ApplyChanges
from taskgov.services.claim_cluster import ClaimCluster
from taskgov.services.step_inputs import LastPlan


class ApplyChangeSettings(Settings):
    table_name: str
    bucket_name: str


@cache
def apply_changes() -> ApplyChanges:
    """Return the use case over AWS."""
    settings = ApplyChangeSettings.from_env()
    documents = Bucket(aws.s3(), settings.bucket_name)
    state, clock = Table(aws.table(settings.table_name)), SystemClock()
    reached = backends(documents)
    return ApplyChanges(
        ApplyChange(backends=reached, documents=documents, state=state, clock=clock, read_plan=LastPlan()),
        ClaimCluster(reached, state, clock),
    )
