"""Hold together what every service of the emulated account needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskgov_embedded.aws_api.aws_requests import AwsRequests
    from taskgov_embedded.aws_api.clients import Clients
    from taskgov_embedded.aws_api.faults import Faults
    from taskgov_embedded.cloudformation.resources import Resources
    from taskgov_embedded.iam.identity import Identities
    from taskgov_embedded.place import Place
    from taskgov_embedded.timeline import Timeline
    from taskgov_embedded.virtual_time.clock import VirtualClock
    from taskgov_embedded.virtual_time.cooperative import Turns


@dataclass(frozen=True, slots=True)
class Account:
    """One emulated account in one Region."""

    place: Place
    turns: Turns
    identities: Identities
    clients: Clients
    requests: AwsRequests
    timeline: Timeline
    faults: Faults
    resources: Resources

    @property
    def clock(self) -> VirtualClock:
        """The stack's clock."""
        return self.turns.clock
