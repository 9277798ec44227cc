"""Which leases can a document never give? Those of more than it gives their donors, whatever the cluster has."""

from collections.abc import Callable, Iterator

from taskgov.findings import Finding
from taskgov.findings.of_document import LEASE_BEYOND_DONOR
from taskgov.hyperpod.hardware import stands_for
from taskgov.policy.document import EditPolicy, PolicyDocument
from taskgov.policy.measured import Lease, Unit
from taskgov.violations import Location


def leases_beyond_their_donors(document: PolicyDocument, place: Callable[[Location], str]) -> Iterator[Finding]:
    """Warn of leases of whole instances that exceed the donor's quota, or ceiling, and all that it leases at that time.

    A donor with a share without ceiling, with a family or parts of the type, and the shared pool, have what capacity
    gives them: no warning.
    """
    for index, lease in enumerate(document.leases):
        has = _has(document, lease)
        if has is None or lease.count <= has or (lease.partial and has):
            continue
        yield LEASE_BEYOND_DONOR.about(
            place(("leases", index, "count")),
            {"team": lease.from_, "instanceType": lease.instance_type, "count": lease.count, "has": has},
            donor=lease.from_,
            has=has,
            instance_type=lease.instance_type,
            count=lease.count,
            borrower=lease.to,
        )


def _has(document: PolicyDocument, lease: Lease) -> int | None:
    """Return the instances that the donor has at most; None where that depends on the cluster."""
    donor = next((team for team in document.teams if team.name == lease.from_), None)
    if donor is None or lease.unit is not Unit.INSTANCES or document.hand_edits is EditPolicy.ADOPT:
        return None
    name = lease.instance_type
    rows = [row for row in (donor.quota.compute_quota_resources if donor.quota else ()) if row.instance_type == name]
    shares = [share for share in donor.share if share.instance_type == name]
    gets = [
        other
        for other in document.leases
        if (other.to, other.instance_type) == (donor.name, name) and other.start < lease.end and lease.start < other.end
    ]
    by_capacity = (
        any(share.ceiling is None or share.unit is not Unit.INSTANCES for share in shares),
        any(stands_for(family.family, name) for family in donor.families),
        any(row.count is None for row in rows),
        any(other.unit is not Unit.INSTANCES for other in gets),
    )
    if any(by_capacity):
        return None
    return sum((*(row.count or 0 for row in rows), *(share.ceiling or 0 for share in shares), *(o.count for o in gets)))
