"""What preflight reads of an account before anything is deployed: each thing as it is, or why it could not be read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_cli.doctor.facts import Network, Read


@dataclass(frozen=True, slots=True)
class Concurrency:
    """GetAccountSettings of Lambda."""

    limit: int
    unreserved: int
    code_limit: int
    """Bytes of code that the account may keep in the Region."""
    code_used: int


@dataclass(frozen=True, slots=True)
class Quota:
    """A quota of the account (Service Quotas), and how much of it is in use; None where that was not counted."""

    value: int
    in_use: int | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """All that was read."""

    identity: Read[str]
    """The account's number."""
    stack: Read[str | None]
    """The status of the stack, None where there is none."""
    clusters: Read[int]
    """How many clusters of the chosen backend there are."""
    definitions: Mapping[str, Read[tuple[str, ...]]]
    """What Step Functions has against each state machine of the template; empty: nothing."""
    concurrency: Read[Concurrency]
    quotas: Mapping[str, Read[Quota]]
    """By the key of the row in `limits.LIMITS`."""
    network: Read[Network | None]
    """The VPC of `VpcSubnetIds`; None where none is given."""
