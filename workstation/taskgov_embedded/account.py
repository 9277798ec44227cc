"""Hold together what every service of the emulated account needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov_embedded.aws_api.aws_requests import AwsRequests
from taskgov_embedded.aws_api.clients import Clients
from taskgov_embedded.aws_api.faults import Faults
from taskgov_embedded.aws_api.patches import Patches
from taskgov_embedded.cloudformation.resources import Resources
from taskgov_embedded.cloudwatch.service_metrics import ServiceMetrics
from taskgov_embedded.functions import process
from taskgov_embedded.iam.identity import Identities
from taskgov_embedded.iam.policies import Policies
from taskgov_embedded.timeline import Timeline
from taskgov_embedded.virtual_time.cooperative import Turns

if TYPE_CHECKING:
    from taskgov_embedded.place import Place
    from taskgov_embedded.virtual_time.clock import VirtualClock


class Account:
    """One emulated account in one Region."""

    def __init__(self, place: Place, clock: VirtualClock) -> None:
        self.place = place
        self.clock = clock
        self.timeline = Timeline(clock)
        self.faults = Faults()
        self.metrics = ServiceMetrics(place, clock)
        self.turns = Turns(clock, process.suspended)
        self.identities = Identities(place.account)
        self.clients = Clients(place, self.identities)
        self.patches = Patches()
        self.resources = Resources(place, self.clients, self.patches)
        self.policies = Policies(self.resources, place)
        self.requests = AwsRequests(
            place,
            self.identities,
            self.turns,
            self.timeline,
            self.faults,
            self.policies.of_role,
            lambda: process.running(None),
        )
