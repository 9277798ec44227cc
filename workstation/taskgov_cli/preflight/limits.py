"""Which quotas of the account does the stack count against? One row for each; how much it needs says `needs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_cli.preflight.needs import Needs


@dataclass(frozen=True, slots=True)
class Limit:
    """A quota of a service in one Region."""

    service: str
    """Service Quotas' code of the service."""
    names: tuple[str, ...]
    """How Service Quotas calls the quota, today or earlier; its code where that is published."""
    default: int
    """The smallest documented default, where Service Quotas does not list the quota."""
    needed: Callable[[Needs], int]
    source: str


LIMITS: Final = {
    "eventbridge-rules": Limit(
        "events",
        ("L-244521F2", "Number of rules"),
        100,
        lambda needs: needs.rules,
        "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html (on one bus; 300 in most Regions)",
    ),
    "eventbridge-buses": Limit(
        "events",
        ("L-658A4FD9", "Event buses"),
        100,
        lambda needs: needs.buses,
        "https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-quota.html",
    ),
    "state-machines": Limit(
        "states",
        ("Registered state machines", "Maximum number of registered state machines"),
        10_000,
        lambda needs: needs.state_machines,
        "https://docs.aws.amazon.com/step-functions/latest/dg/service-quotas.html (100,000 today, 10,000 before)",
    ),
    "schedules": Limit(
        "scheduler",
        ("Number of schedules",),
        1_000_000,
        lambda needs: needs.schedules,
        "https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html (10,000,000 today)",
    ),
    "schedule-groups": Limit(
        "scheduler",
        ("Number of schedule groups",),
        500,
        lambda needs: needs.schedule_groups,
        "https://docs.aws.amazon.com/scheduler/latest/UserGuide/scheduler-quotas.html",
    ),
}
"""What is in use is counted where it may come near the limit: rules, buses and groups. Lambda's come from Lambda."""
LAMBDA_CONCURRENCY: Final = "L-B99A9384"
"""Code of the quota "Concurrent executions" of the service `lambda`."""
USUAL_CONCURRENCY: Final = 1000
"""The quota's documented default; a new account has less."""
KEPT_UNRESERVED: Final = 100
"""Concurrency that Lambda never lets anybody reserve.

Source: https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html
"""
