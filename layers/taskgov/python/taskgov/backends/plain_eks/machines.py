"""The machines of plain EKS clusters, as EC2 and EC2 Auto Scaling describe them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from taskgov.adapters.errors import translated
from taskgov.errors import UpstreamError

if TYPE_CHECKING:
    from mypy_boto3_autoscaling import AutoScalingClient
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

Page = TypeVar("Page", bound=Mapping[str, Any])
BATCH: Final = 200
"""Values that one filter takes (EC2 API reference, DescribeInstances)."""
MAX_PAGES: Final = 50
"""Pages that the answer to one batch may have: one is enough, unless the service sends short ones."""
_REMOVED: Final = ("Terminat", "Warmed:")
"""How the lifecycle states begin of instances that leave their group: for good, or for its warm pool."""
AUTO_SCALING_BATCH: Final = 50
"""Ids that one call takes (EC2 Auto Scaling API reference, DescribeAutoScalingInstances)."""


def states_of(ec2: "EC2Client", cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the state of each instance that EC2 has, by id. Raises ThrottledError, UpstreamError.

    Ids go into a filter: a list of ids fails as a whole when EC2 no longer lists one of them. EC2 shows a terminated
    instance for about an hour.
    """
    _check_region("describe instances", "EC2", cluster_arn, ec2.meta.region_name)
    return {
        instance["InstanceId"]: instance["State"]["Name"]
        for start in range(0, len(instance_ids), BATCH)
        for instance in _pages(ec2, instance_ids[start : start + BATCH])
    }


def removed_by_auto_scaling(
    auto_scaling: "AutoScalingClient", cluster_arn: str, instance_ids: Sequence[str]
) -> frozenset[str]:
    """Return the ids of the instances that Auto Scaling takes out of service. Raises ThrottledError, UpstreamError.

    A lifecycle hook, as managed node groups have one to drain nodes, keeps such an instance running in EC2, in the
    lifecycle state `Terminating:Wait`, `Terminating:Proceed` or, if it is kept for inspection, `Terminating:Retained`;
    so does a warm pool (EC2 Auto Scaling user guide, "Amazon EC2 Auto Scaling instance lifecycle"). Instances in no
    Auto Scaling group are missing from the answer.
    """
    what = "describe Auto Scaling instances"
    _check_region(what, "Auto Scaling", cluster_arn, auto_scaling.meta.region_name)
    paginator = auto_scaling.get_paginator("describe_auto_scaling_instances")
    with translated(what):
        return frozenset(
            instance["InstanceId"]
            for start in range(0, len(instance_ids), AUTO_SCALING_BATCH)
            for page in _bounded(what, paginator.paginate(InstanceIds=instance_ids[start : start + AUTO_SCALING_BATCH]))
            for instance in page["AutoScalingInstances"]
            if instance["LifecycleState"].startswith(_REMOVED)
        )


def _check_region(call: str, service: str, cluster_arn: str, here: str) -> None:
    region = cluster_arn.split(":")[3]
    if region != here:
        raise UpstreamError(f"{call}: the cluster is in {region}, but the {service} client is in {here}")


def _pages(ec2: "EC2Client", batch: Sequence[str]) -> "Iterator[InstanceTypeDef]":
    wanted = [{"Name": "instance-id", "Values": list(batch)}]
    what = "describe instances"
    with translated(what):
        for page in _bounded(what, ec2.get_paginator("describe_instances").paginate(Filters=wanted)):  # type: ignore[arg-type]
            for reservation in page["Reservations"]:
                yield from reservation["Instances"]


def _bounded(what: str, pages: Iterable[Page]) -> Iterator[Page]:
    """Yield pages. Raises UpstreamError for a list that comes back to where it was, or does not end."""
    seen: set[str] = set()
    for page in pages:
        yield page
        token = page.get("NextToken", "")
        if token in seen or len(seen) >= MAX_PAGES:
            raise UpstreamError(f"{what}: the list does not end ({len(seen)} pages)")
        seen |= {token} - {""}
