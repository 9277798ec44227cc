"""Compose `read_snapshot`."""

from functools import cache

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap import aws
from taskgov.bootstrap.take_snapshot import take_snapshot
from taskgov.config import Settings
from taskgov.services.read_snapshot import ReadSnapshot


class ReadSnapshotSettings(Settings):
    table_name: str
    bucket_name: str


@cache
def read_snapshot() -> ReadSnapshot:
    """Return the use case over AWS and the cluster's Kubernetes API."""
    settings = ReadSnapshotSettings.from_env()
    state = Table(aws.table(settings.table_name))
    documents = Bucket(aws.s3(), settings.bucket_name)
    return ReadSnapshot(
        take_snapshot=take_snapshot(state, documents),
        documents=documents,
        state=state,
    )
