"""The machines of plain EKS clusters, as EC2 describes them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from taskgov.adapters.errors import translated
from taskgov.errors import UpstreamError

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_ec2.type_defs import InstanceTypeDef

BATCH: Final = 200
"""Values that one filter takes (EC2 API reference, DescribeInstances)."""
MAX_PAGES: Final = 50
"""Pages that the answer to one batch may have: one is enough, unless EC2 sends short ones."""


def states_of(ec2: "EC2Client", cluster_arn: str, instance_ids: Sequence[str]) -> Mapping[str, str]:
    """Return the state of each instance that EC2 has, by id. Raises ThrottledError, UpstreamError.

    Ids go into a filter: a list of ids fails as a whole when EC2 no longer lists one of them. EC2 shows a terminated
    instance for about an hour.
    """
    region, here = cluster_arn.split(":")[3], ec2.meta.region_name
    if region != here:
        raise UpstreamError(f"describe instances: the cluster is in {region}, but the EC2 client is in {here}")
    return {
        instance["InstanceId"]: instance["State"]["Name"]
        for start in range(0, len(instance_ids), BATCH)
        for instance in _pages(ec2, instance_ids[start : start + BATCH])
    }


def _pages(ec2: "EC2Client", batch: Sequence[str]) -> "Iterator[InstanceTypeDef]":
    wanted = [{"Name": "instance-id", "Values": list(batch)}]
    seen: set[str] = set()
    with translated("describe instances"):
        for page in ec2.get_paginator("describe_instances").paginate(Filters=wanted):  # type: ignore[arg-type]
            for reservation in page["Reservations"]:
                yield from reservation["Instances"]
            token = page.get("NextToken", "")
            if token in seen or len(seen) >= MAX_PAGES:
                raise UpstreamError(f"describe instances: the list does not end ({len(seen)} pages)")
            seen |= {token} - {""}
