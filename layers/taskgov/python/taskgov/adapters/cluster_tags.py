"""Tags of the clusters themselves, HyperPod's and EKS's: where a stack leaves its mark."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from taskgov.adapters.errors import translated

if TYPE_CHECKING:
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_sagemaker import SageMakerClient

MOST: Final = 100
"""A page of ListTags; a resource has at most 50 tags."""


class AwsClusterTags:
    """The `ClusterTags` port. The EKS client is made when the first EKS cluster is met."""

    def __init__(self, sagemaker: "SageMakerClient", eks: "Callable[[], EKSClient]") -> None:
        self._sagemaker = sagemaker
        self._eks = eks

    def of(self, cluster_arn: str) -> Mapping[str, str]:
        """Return all tags. EKS shows them in DescribeCluster, which every run may call."""
        with translated(f"list the tags of {cluster_arn}"):
            if _is_eks(cluster_arn):
                return self._eks().describe_cluster(name=cluster_arn.rpartition("/")[2])["cluster"].get("tags", {})
            answer = self._sagemaker.list_tags(ResourceArn=cluster_arn, MaxResults=MOST)
        return {tag["Key"]: tag["Value"] for tag in answer["Tags"]}

    def put(self, cluster_arn: str, key: str, value: str) -> None:
        """Set one tag."""
        with translated(f"tag {cluster_arn} with {key}"):
            if _is_eks(cluster_arn):
                self._eks().tag_resource(resourceArn=cluster_arn, tags={key: value})
            else:
                self._sagemaker.add_tags(ResourceArn=cluster_arn, Tags=[{"Key": key, "Value": value}])

    def remove(self, cluster_arn: str, key: str) -> None:
        """Take one tag away."""
        with translated(f"take the tag {key} off {cluster_arn}"):
            if _is_eks(cluster_arn):
                self._eks().untag_resource(resourceArn=cluster_arn, tagKeys=[key])
            else:
                self._sagemaker.delete_tags(ResourceArn=cluster_arn, TagKeys=[key])


def _is_eks(arn: str) -> bool:
    return arn.split(":")[2:3] == ["eks"]
