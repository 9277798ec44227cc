"""Hold together what every service of the emulated account needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskgov_embedded.access import Place
    from taskgov_embedded.baton import Baton
    from taskgov_embedded.clients import Clients
    from taskgov_embedded.clock import VirtualClock
    from taskgov_embedded.faults import Faults
    from taskgov_embedded.gateway import Gateway
    from taskgov_embedded.identity import Identities
    from taskgov_embedded.resources import Resources
    from taskgov_embedded.timeline import Timeline


@dataclass(frozen=True, slots=True)
class Account:
    """One emulated account in one Region."""

    place: Place
    baton: Baton
    identities: Identities
    clients: Clients
    gateway: Gateway
    timeline: Timeline
    faults: Faults
    resources: Resources

    @property
    def clock(self) -> VirtualClock:
        """The stack's clock."""
        return self.baton.clock
