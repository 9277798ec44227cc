"""Compose the port behind which SageMaker and the `kueue` backend stand."""

from functools import cache, partial
from typing import TYPE_CHECKING

import boto3

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.failures import ReportedFailures
from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.adapters.s3 import Bucket
from taskgov.adapters.sagemaker import SageMaker
from taskgov.bootstrap import aws
from taskgov.observability import logger
from taskgov.services.governance import Governance

if TYPE_CHECKING:
    from taskgov.ports import QuotaStore


def governance(documents: Bucket) -> Governance:
    """Return the port over AWS; the Kubernetes client is loaded only where an EKS cluster is met."""

    @cache
    def kueue() -> "QuotaStore":
        from taskgov.adapters.kubernetes import EksConnections  # noqa: PLC0415 - 0.1 s that HyperPod clusters never need
        from taskgov.adapters.kueue_quotas import KueueQuotas  # noqa: PLC0415 - as above
        from taskgov.services.instance_tables import table_of  # noqa: PLC0415 - as above

        connections = EksConnections(aws.eks(), boto3.Session(), SystemClock().now)
        return KueueQuotas(connections, partial(table_of, documents))

    return Governance(SageMaker(aws.sagemaker()), documents, kueue, ReportedFailures(logger, EmbeddedMetrics()))
