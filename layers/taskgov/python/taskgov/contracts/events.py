"""Events in: what an EventBridge event says about a cluster.

`receive_event` calls `parse_event`. The forms are listed in `docs/events.md`, with what is documented and what is inferred.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from taskgov.contracts.steps import Cause


@dataclass(frozen=True, slots=True)
class Subject:
    """Which cluster an event concerns, in whatever way the event names it; `everything` is all clusters (a resync)."""

    cluster_arn: str | None = None
    cluster_name: str | None = None
    compute_quota_id: str | None = None
    scheduler_config_id: str | None = None
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Hint:
    """An event that makes a cluster dirty. `edited_quota_id` is set when a person changed that quota."""

    subject: Subject
    cause: Cause
    edited_quota_id: str | None = None


@dataclass(frozen=True, slots=True)
class Ignored:
    """An event that concerns nobody here, and why."""

    reason: str


def parse_event(event: Mapping[str, Any], *, own_role_arn: str) -> Hint | Ignored:
    """Return what an event says. Raises MalformedEventError for an event of a known kind that cannot be read.

    `own_role_arn` is the role by which the automation itself writes quotas: its calls come back as CloudTrail events.
    """
    raise NotImplementedError
