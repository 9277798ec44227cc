"""What do the instance types of an EKS cluster offer? Its policy document may know more than the built-in table."""

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.parse import parse_policy
from taskgov.ports import DocumentStore


def table_of(documents: DocumentStore, cluster_arn: str) -> InstanceTypeTable:
    """Return the table of a cluster; a document that cannot be used adds nothing."""
    stored = documents.policy(cluster_arn.rpartition("/")[2])
    document = parse_policy(stored.body).document if stored else None
    return document.instance_type_table() if document else InstanceTypeTable()
