"""What the doctor checks for the clusters of one backend only; each backend has its own `checks_*` module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from taskgov_cli.doctor.diagnosis import Diagnosis
from taskgov_cli.doctor.facts import DeployedStack, Facts, Names

Checks = Callable[[Facts, Names], list[Diagnosis]]


@dataclass(frozen=True, slots=True)
class BackendChecks:
    """The checks of a backend's clusters, and what the functions need for them."""

    cluster: Checks
    """Checks of the cluster itself, which come first."""
    events: Checks
    """How the stack gets its events."""
    rights: tuple[tuple[str, str, str, str], ...]
    """What the functions do in the cluster (`docs/rbac.yaml`): group of Kubernetes, verb, API group, resource."""
    permissions: Callable[[DeployedStack], Mapping[str, Mapping[str, tuple[str, ...]]]]
    """What the functions' roles have to be allowed: role's logical id -> resource -> actions on it."""
    groups: Mapping[str, str] = field(default_factory=dict)
    """Roles that need an access entry beside those that read every cluster: logical id -> group of Kubernetes."""
