"""The two kinds of governance object, and one object with all its versions: how Describe and List show it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the two kinds of governance object, by the names of its API members."""

    name: str
    arn_part: str
    spec: tuple[str, ...]
    in_summary: tuple[str, ...]
    one_per_cluster: bool

    @property
    def summaries(self) -> str:
        """The list's name in a List answer."""
        return f"{self.name}Summaries"


COMPUTE_QUOTA = Kind(
    name="ComputeQuota",
    arn_part="compute-quota",
    spec=("ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState", "Description"),
    in_summary=("ComputeQuotaConfig", "ComputeQuotaTarget", "ActivationState"),
    one_per_cluster=False,
)
SCHEDULER_CONFIG = Kind(
    name="ClusterSchedulerConfig",
    arn_part="cluster-scheduler-config",
    spec=("SchedulerConfig", "Description"),
    in_summary=(),
    one_per_cluster=True,
)


@dataclass(slots=True)
class Governed:
    """One object with all its versions; `versions[0]` is version 1."""

    kind: Kind
    id: str
    arn: str
    name: str
    cluster_arn: str
    created: datetime
    created_by: Mapping[str, Any]
    versions: list[dict[str, Any]]
    status: str = "Creating"
    failure: str | None = None
    modified: datetime | None = None
    modified_by: Mapping[str, Any] | None = None
    past: list[tuple[datetime, Mapping[str, Any] | None]] = field(default_factory=list)
    """What List showed from a moment on, oldest first; None: that it is gone."""

    @property
    def version(self) -> int:
        """The current version's number."""
        return len(self.versions)

    def describe(self, version: int | None = None) -> dict[str, Any]:
        """Return the Describe answer; an old version is one that has settled."""
        number = self.version if version is None else version
        is_current = number == self.version
        answer = self._identity() | {
            f"{self.kind.name}Version": number,
            "Status": self.status if is_current else ("Created" if number == 1 else "Updated"),
            "ClusterArn": self.cluster_arn,
            "CreationTime": self.created,
            "CreatedBy": self.created_by,
            **self.versions[number - 1],
        }
        optional = {
            "FailureReason": self.failure if is_current else None,
            "LastModifiedTime": self.modified,
            "LastModifiedBy": self.modified_by,
        }
        answer |= {key: value for key, value in optional.items() if value is not None}
        return answer | self._status_details(answer)

    def summary(self) -> dict[str, Any]:
        """Return the object as List shows it."""
        described = self.describe()
        shown = (
            *self._identity(),
            f"{self.kind.name}Version",
            "Status",
            "ClusterArn",
            "CreationTime",
            "LastModifiedTime",
            *self.kind.in_summary,
        )
        return {key: described[key] for key in shown if key in described}

    def remember(self, moment: datetime, *, gone: bool = False) -> None:
        """Keep what List shows from this moment on."""
        self.past.append((moment, None if gone else self.summary()))

    def summary_at(self, moment: datetime) -> Mapping[str, Any] | None:
        """Return the object as List showed it at a moment of the past, None when it did not."""
        return next((shown for since, shown in reversed(self.past) if since <= moment), None)

    def _identity(self) -> dict[str, Any]:
        return {f"{self.kind.name}Arn": self.arn, f"{self.kind.name}Id": self.id, "Name": self.name}

    def _status_details(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        config = answer.get("SchedulerConfig")
        if config is None:
            return {}
        return {"StatusDetails": dict.fromkeys(config, self.status)}
