"""The planned quota of one team: the third of four forms of a quota (`taskgov.allocation.claims`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from taskgov.allocation.parts import RowKey
from taskgov.allocation.plan import TeamAllocation
from taskgov.allocation.promises import Promise
from taskgov.allocation.sharing import Borrowing
from taskgov.allocation.sources import Tell
from taskgov.hyperpod.model import ComputeQuotaConfig, ComputeQuotaTarget, ResourceSharingConfig


@dataclass(frozen=True, slots=True)
class Allocation:
    """One team's whole quota as planned, and how its numbers come about.

    Adds to the team's claims: the quota as the API takes it, how the team shares, and what is kept on record with it.
    """

    promise: Promise
    config: ComputeQuotaConfig
    target: ComputeQuotaTarget
    lines: tuple[TeamAllocation, ...]
    note: str = ""
    """A sentence on what limits hold back."""
    borrowing: Borrowing = ""
    """The effect of the team's budget on its borrowing."""
    within_budget: ResourceSharingConfig | None = None
    """How the team shares within its budget; None if unknown."""
    leased: Mapping[str, int] = field(default_factory=dict)
    """Whole instances that leases add, by type; negative if they take."""
    demand: Mapping[str, int] = field(default_factory=dict)
    """Whole instances by type that demand leaves of the promise."""
    tells: Mapping[RowKey, Tell] = field(default_factory=dict)
    """Where each row of the quota comes from, and why rows of nothing that are not written are nothing."""
    lost: tuple[str, ...] = ()
    """Instance types for which the quota has no row left."""
    wanted: str = ""
    """Digest of the planned quota, if limits or refused writes change it; otherwise empty."""
