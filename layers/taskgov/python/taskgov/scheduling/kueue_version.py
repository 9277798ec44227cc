"""Which Kueue does the model follow, and which one runs? Releases, and what is known to differ between them.

The one place for both the version that is followed and the table of differences. Only minor versions are compared: a
patch release changes no decision on purpose.

Sources: the versions of defaults in `pkg/features/kube_features.go` and the change logs of Kueue 0.11 to 0.20; the
releases inside HyperPod's add-on from its documentation ("Upgrade task governance").
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_VERSION: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?(?:[-+].*)?")


@dataclass(frozen=True, slots=True, order=True)
class Release:
    """A release of Kueue; the patch is None where only the minor version is known."""

    major: int
    minor: int
    patch: int | None = None

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + ("" if self.patch is None else f".{self.patch}")

    @property
    def line(self) -> tuple[int, int]:
        """Major and minor: what decides whether another behaviour is expected."""
        return self.major, self.minor


FOLLOWED: Final = Release(0, 19, 2)
"""The Kueue whose decisions the model makes: what HyperPod's add-on v1.6.0 packages."""

IN_ADD_ON: Final[Mapping[tuple[int, int], Release]] = {
    (1, 3): Release(0, 12),
    (1, 5): Release(0, 18),
    (1, 6): Release(0, 19, 2),
}
"""Kueue inside HyperPod's task governance add-on, by the add-on's major and minor version."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What a minor version of Kueue brought that changes decisions, objects or words."""

    since: tuple[int, int]
    what: str


DIFFERENCES: Final = (
    Difference((0, 11), "fair sharing orders entries by a tournament"),
    Difference((0, 12), "classical preemption in trees of cohorts"),
    Difference((0, 13), "a flavor whose preemption has no candidates comes after one whose preemption has"),
    Difference((0, 14), "shares are exact, and the flavor with the least borrowing level is chosen"),
    Difference((0, 14), "topology-aware scheduling is on by default"),
    Difference((0, 15), "a head that waits for its preemptions stays first in its queue"),
    Difference((0, 15), "admission fair sharing is on by default, and v1beta2 is served"),
    Difference((0, 17), "under fair sharing, who does not borrow comes first, and work within its quota may preempt"),
    Difference((0, 18), "pending workloads of one shape are considered as one"),
    Difference((0, 18), "elastic jobs (workload slices) are on by default"),
    Difference((0, 19), "a flavor search continues where it stopped after a skip or an update"),
    Difference((0, 19), "the annotation admission-gated-by and quotaCheckStrategy are on by default"),
    Difference((0, 20), "a preemptor whose victims another took in the same cycle looks for others"),
    Difference((0, 20), "reasons of waiting workloads are granular, not Pending"),
    Difference((0, 20), "the head of a queue that waits for preemptions is kept in other cases (kueue#14863)"),
    Difference((0, 20), "victims are counted with pods and with partial counts (kueue#16167)"),
    Difference((0, 20), "quotas may be beyond 64 bits (kueue#15026), and LimitRanges are charged (kueue#15023)"),
    Difference((0, 20), "workloads may be of one shape whatever their pod sets are called"),
    Difference((0, 20), "workloads get a default priority class"),
    Difference((0, 20), "v1beta1 is no longer served"),
    Difference((0, 20), "status.effectiveQuotas of queues and cohorts takes the place of their spec (alpha)"),
)
"""What is known to change decisions, by the minor version that brought it, oldest first."""


def release_of(version: str) -> Release | None:
    """Return the release of Kueue that an image or a version names, None where it names none that is known.

    Kueue is at 0.x: a version from 1.0 on is taken for the add-on's (an inference), and mapped to the Kueue inside.

    Example:
        >>> str(release_of("registry.k8s.io/kueue/kueue:v0.19.2")), str(release_of("v1.5.0-eksbuild.1"))
        ('0.19.2', '0.18')
        >>> release_of("kueue@sha256:0a1b") is release_of("v1.9.0") is None
        True

    """
    name = version.partition("@")[0].rpartition("/")[2]
    found = _VERSION.fullmatch(name.rpartition(":")[2])
    if found is None:
        return None
    major, minor, patch = found.groups()
    if int(major) > 0:
        return IN_ADD_ON.get((int(major), int(minor)))
    return Release(int(major), int(minor), None if patch is None else int(patch))


def is_followed(release: Release) -> bool:
    """Return whether a release is of the minor version that the model follows."""
    return release.line == FOLLOWED.line


def differences(release: Release) -> tuple[str, ...]:
    """Return what is known to differ between the model and a release: what came since the older of both."""
    low, high = sorted((release.line, FOLLOWED.line))
    return tuple(difference.what for difference in DIFFERENCES if low < difference.since <= high)


def said_differences(release: Release) -> str:
    """Return the differences as a part of a sentence: what the release has already, or does not have yet.

    Example:
        >>> said_differences(Release(0, 21)).partition(":")[0], said_differences(Release(0, 19))
        ('it has, beyond the model', 'nothing is known to differ')

    """
    known = differences(release)
    if not known:
        return "nothing is known to differ"
    side = "it has, beyond the model" if release.line > FOLLOWED.line else "it does not have yet"
    return f"{side}: {'; '.join(known)}"
