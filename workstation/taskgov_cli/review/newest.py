"""The newest snapshot that the runs of a stack have stored: to plan on, with no right but to read the bucket."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3

from taskgov.adapters.errors import translated
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import NotFoundError
from taskgov.snapshot.codec import snapshot_from_json
from taskgov_cli.stack_outputs import stack_outputs

if TYPE_CHECKING:
    from taskgov.snapshot.model import Snapshot

PREFIX = "snapshots/{}/"
"""As `taskgov.services.read_snapshot` stores them."""


def newest_snapshot(stack: str, cluster_name: str) -> Snapshot:
    """Return it. Raises NotFoundError where no run has stored one, GovernanceError."""
    bucket = stack_outputs(boto3.client("cloudformation", config=CONFIG), stack, "BucketName")["BucketName"]
    client, prefix = boto3.client("s3", config=CONFIG), PREFIX.format(cluster_name)
    with translated(f"list {prefix} of {bucket}"):
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        stored = [found for page in pages for found in page.get("Contents", ())]
    newest = max(stored, key=lambda found: (found["LastModified"], found["Key"]), default=None)
    body = None if newest is None else Bucket(client, bucket).find(newest["Key"])
    if body is None:
        raise NotFoundError(
            f"no run of stack {stack} has stored a snapshot of {cluster_name}: taskgov reconcile {cluster_name}"
        )
    return snapshot_from_json(body)
