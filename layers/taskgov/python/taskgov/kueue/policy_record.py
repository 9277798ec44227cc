"""The cluster policy where no SageMaker keeps it: its priority classes in the cluster, the rest written on the cohort.

Kueue has no object for fair sharing: that is the manager's own configuration (`taskgov.kueue.render`). The policy keeps
what was requested; priority classes that somebody changed show as they are.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import ValidationError

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ClusterSchedulerConfig, PriorityClass, SchedulerConfig
from taskgov.hyperpod.names import priority_class_of
from taskgov.kueue.render import KueueVersion, Manifest, render

POLICY: Final = "taskgov/cluster-policy"


@dataclass(frozen=True, slots=True)
class PolicyRecord:
    """The policy as requested, and its version."""

    name: str
    config: SchedulerConfig
    version: int

    def to_json(self) -> str:
        """Return the annotation's text."""
        return json.dumps({"name": self.name, "config": self.config.to_api(), "version": self.version}, sort_keys=True)

    @classmethod
    def of(cls, cohort: Mapping[str, Any] | None) -> Self | None:
        """Return the record on the cohort; None where there is none that can be read."""
        text = ((cohort or {}).get("metadata", {}).get("annotations") or {}).get(POLICY)
        try:
            found = json.loads(text or "")
            return cls(str(found["name"]), SchedulerConfig.model_validate(found["config"]), int(found["version"]))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, ValidationError):
            return None


def policy_of(
    cohort: Mapping[str, Any] | None, classes: Iterable[Mapping[str, Any]], policy_id: str, cluster_arn: str
) -> ClusterSchedulerConfig | None:
    """Return the cluster policy, with its priority classes as they stand in the cluster; None when none was written."""
    record = PolicyRecord.of(cohort)
    if record is None:
        return None
    values = {priority_class["metadata"]["name"]: int(priority_class["value"]) for priority_class in classes}
    asked = record.config.priority_classes
    standing = tuple(
        PriorityClass(name=priority_class.name, weight=values[priority_class_of(priority_class.name)])
        for priority_class in asked or ()
        if priority_class_of(priority_class.name) in values
    )
    return ClusterSchedulerConfig(
        cluster_scheduler_config_id=policy_id,
        name=record.name,
        cluster_scheduler_config_version=record.version,
        status="Created" if record.version == 1 else "Updated",
        cluster_arn=cluster_arn,
        scheduler_config=record.config.model_copy(update={"priority_classes": None if asked is None else standing}),
    )


def classes_of(config: SchedulerConfig | None, version: KueueVersion) -> tuple[Manifest, ...]:
    """Return the WorkloadPriorityClasses of a policy."""
    return render((), config, InstanceTypeTable(), version).priority_classes
