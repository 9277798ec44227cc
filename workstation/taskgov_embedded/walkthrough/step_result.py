"""The result of one step of a walkthrough: checks examine it, and the demo shows it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.allocation.lease_book import LeaseEntry
    from taskgov.allocation.plan import Plan
    from taskgov.scheduling import CycleResult
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.functions.runtime import Result
    from taskgov_embedded.timeline import Moment

QuotaRows = dict[str, tuple[dict[str, Any], ...]]
"""Team to the resources of its quota, in the API's form."""


@dataclass(frozen=True, slots=True)
class Check:
    """One expectation: what it is about, what was wanted, what holds."""

    what: str
    passed: bool
    wanted: str
    got: str


def equal(what: str, wanted: object, got: object) -> Check:
    """Return the check that two values are the same."""
    return Check(what, wanted == got, _shown(wanted), _shown(got))


def _shown(value: object) -> str:
    return value if isinstance(value, str) else as_json(value)


def as_json(value: Any) -> str:
    """Write a value for comparison and display, the same each time."""
    return json.dumps(value, sort_keys=True, default=str)


@dataclass(slots=True)
class StepResult:
    """A step as it happened."""

    title: str
    quotas_before: QuotaRows
    quotas_after: QuotaRows = field(default_factory=dict)
    usage_after: Mapping[str, Mapping[str, Mapping[str, tuple[str, str]]]] = field(default_factory=dict)
    """Team -> flavor -> resource -> total and borrowed."""
    jobs_after: Mapping[str, str] = field(default_factory=dict)
    leases: tuple[LeaseEntry, ...] = ()
    moments: list[Moment] = field(default_factory=list)
    cycles: list[CycleResult] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    kueue_writes: list[str] = field(default_factory=list)
    """Objects with a quota or the cluster policy that the automation wrote, where it keeps them itself."""
    invocations: list[Result] = field(default_factory=list)
    plans: list[Plan] = field(default_factory=list)
    executions: list[tuple[str, str]] = field(default_factory=list)
    """State machine and status of each execution that ended."""
    published: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    team_notices: list[tuple[str, str]] = field(default_factory=list)
    """Name of a team's topic, and what was said on it."""
    reports: list[dict[str, bytes]] = field(default_factory=list)
    """Audit reports: `json` and `html`."""
    checks: list[Check] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    """Answers of calls that the service refused."""
