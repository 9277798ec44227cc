"""The Capacity Blocks that machines of plain EKS clusters run in, as EC2 describes them.

An instance says by itself that it runs in one (`InstanceLifecycle`) and in which (`CapacityReservationId`), whatever
launched it: a managed node group, an Auto Scaling group or Karpenter. So no launch template has to be read.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from taskgov.adapters.errors import UNREADABLE, translated
from taskgov.errors import GovernanceError, UpstreamError
from taskgov.snapshot.leaving import Reserved
from taskgov.snapshot.reservations import CAPACITY_BLOCK, Period, Reservation

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

MAX_PAGES: Final = 200
"""Pages of one list: 200,000 instances or reservations."""
_IN_BLOCKS: Final = [{"Name": "instance-lifecycle", "Values": ["capacity-block"]}]


def capacity_blocks(ec2: "Callable[[], EC2Client]", cluster_arn: str) -> Reserved:
    """Return the Capacity Blocks of the account's instances. An account without such instances costs one call."""
    try:
        client, region = ec2(), cluster_arn.split(":")[3]
        if client.meta.region_name != region:
            here = client.meta.region_name
            raise UpstreamError(f"describe instances: the cluster is in {region}, but the EC2 client is in {here}")
        by_machine = _by_machine(client)
        listed = _listed(client) if by_machine else {}
        found = tuple(_block(its_id, listed.get(its_id)) for its_id in sorted(set(by_machine.values())))
    except GovernanceError as error:
        why = str(error)
    except UNREADABLE as error:
        why = f"describe instances: an answer cannot be read ({type(error).__name__})"
    else:
        return Reserved(found, by_machine)
    return Reserved((Reservation.silent("", CAPACITY_BLOCK, why),), {})


def _by_machine(client: "EC2Client") -> dict[str, str]:
    return {
        instance["InstanceId"]: instance["CapacityReservationId"]
        for page in _pages(client, "describe_instances", Filters=_IN_BLOCKS)
        for launched in page["Reservations"]
        for instance in launched["Instances"]
        if "CapacityReservationId" in instance
    }


def _listed(client: "EC2Client") -> dict[str, Mapping[str, Any]]:
    """Return all reservations: asked for by their ids, one that is no more would fail the whole call."""
    pages = _pages(client, "describe_capacity_reservations")
    return {found["CapacityReservationId"]: found for page in pages for found in page["CapacityReservations"]}


def _block(its_id: str, found: Mapping[str, Any] | None) -> Reservation:
    if found is None or "EndDate" not in found:
        said = "has no EndDate" if found else "is not listed"
        return Reservation.silent(its_id, CAPACITY_BLOCK, f"describe capacity reservations: {its_id} {said}")
    ends_at = found["EndDate"]
    return Reservation(its_id, CAPACITY_BLOCK, found["State"], (Period(found.get("StartDate", ends_at), ends_at),))


def _pages(client: Any, operation: str, **arguments: Any) -> Iterator[Mapping[str, Any]]:
    what, seen = operation.replace("_", " "), set[str]()
    with translated(what):
        for page in client.get_paginator(operation).paginate(**arguments):
            yield page
            token = page.get("NextToken", "")
            if token in seen or len(seen) >= MAX_PAGES:
                raise UpstreamError(f"{what}: the list does not end ({len(seen)} pages)")
            seen |= {token} - {""}
