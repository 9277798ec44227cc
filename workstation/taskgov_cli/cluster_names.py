"""Suggest the names of clusters where a command names a cluster that is not there."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import boto3

from taskgov.adapters.errors import translated
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import GovernanceError, NotFoundError
from taskgov_explain.find import nearest

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def suggesting(cluster: str) -> Iterator[None]:
    """Add the nearest names of HyperPod clusters to a NotFoundError, where `cluster` is a name that none of them has.

    The error stays as it is where the clusters may not be listed: members of a team often lack that right.
    """
    try:
        yield
    except NotFoundError as error:
        names = [] if cluster.startswith("arn:") else _names()
        if names and cluster not in names:
            raise NotFoundError(f"{str(error).rstrip('.')}; {nearest(cluster, names)}") from error
        raise


def _names() -> list[str]:
    try:
        with translated("list clusters"):
            pages = boto3.client("sagemaker", config=CONFIG).get_paginator("list_clusters").paginate()
            return [summary["ClusterName"] for page in pages for summary in page["ClusterSummaries"]]
    except GovernanceError:
        return []
