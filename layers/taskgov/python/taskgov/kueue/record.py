"""A team's compute quota where no SageMaker keeps it: written on its ClusterQueue, and held against what that says.

The queue carries the quota as requested, in an annotation. As long as the queue is that quota's rendering, the
annotation is the quota; after a change by hand, what the queue says is. So edits by hand show as on HyperPod: a newer
version with another content.

| version | is |
| --- | --- |
| of a queue with a record | the record's, + 1 for each change of the queue since (`metadata.generation`) |
| of any other queue | its generation |
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from pydantic import ValidationError

from taskgov.hyperpod import names
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ActivationState, ComputeQuota, ComputeQuotaConfig, ComputeQuotaTarget
from taskgov.kueue.ownership import Ownership, ownership_of
from taskgov.kueue.queue_text import comparable, config_of, weight_of
from taskgov.kueue.render import KueueVersion, Manifest, RenderedObjects, render

RECORD: Final = "taskgov/quota"
FOREIGN: Final = "Foreign"
"""Status of a quota that taskgov neither made nor adopted: read, and never written."""
_STOPPED: Final = "Stopped"


@dataclass(frozen=True, slots=True)
class Record:
    """The quota as requested, and the version and generation of the queue when it was written."""

    name: str
    config: ComputeQuotaConfig
    weight: int
    version: int
    generation: int

    def to_json(self) -> str:
        """Return the annotation's text."""
        return json.dumps(
            {
                "name": self.name,
                "config": self.config.to_api(),
                "weight": self.weight,
                "version": self.version,
                "generation": self.generation,
            },
            sort_keys=True,
        )

    @classmethod
    def of(cls, queue: Mapping[str, Any]) -> Self | None:
        """Return the record on a queue; None where there is none that can be read (somebody may have written in it)."""
        text = (queue["metadata"].get("annotations") or {}).get(RECORD)
        try:
            found = json.loads(text or "")
            config = ComputeQuotaConfig.model_validate(found["config"])
            return cls(
                str(found["name"]), config, int(found["weight"]), int(found["version"]), int(found["generation"])
            )
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError, ValidationError):
            return None


@dataclass(frozen=True, slots=True)
class Reading:
    """How queues are read: for which cluster, with which instance types, in which version of Kueue's API."""

    cluster_arn: str
    table: InstanceTypeTable
    version: KueueVersion

    def quota_id(self, team: str) -> str:
        """Return the id of a team's quota, unique among all clusters."""
        return f"{self.cluster_arn}/quota/{team}"

    @property
    def policy_id(self) -> str:
        """The id of the cluster policy."""
        return f"{self.cluster_arn}/policy"

    def rendered(
        self, team: str, config: ComputeQuotaConfig, weight: int, activation: ActivationState
    ) -> RenderedObjects:
        """Return the objects of one team's quota."""
        target = ComputeQuotaTarget(team_name=team, fair_share_weight=weight)
        quota = ComputeQuota(
            compute_quota_id=self.quota_id(team),
            name=team,
            compute_quota_version=1,
            status="",
            compute_quota_config=config,
            compute_quota_target=target,
            activation_state=activation,
        )
        return render([quota], None, self.table, self.version)


def owner_of(resource_id: str) -> tuple[str, str]:
    """Return the cluster and the team of a quota's id (no team: of the cluster policy).

    Example:
        >>> owner_of("arn:aws:eks:us-east-1:111122223333:cluster/ml/quota/team-a")
        ('arn:aws:eks:us-east-1:111122223333:cluster/ml', 'team-a')

    """
    cluster_arn, _, team = resource_id.rpartition("/quota/")
    return (cluster_arn, team) if cluster_arn else (resource_id.removesuffix("/policy"), "")


def version_of(queue: Mapping[str, Any]) -> int:
    """Return the version of the quota that a queue stands for."""
    record, generation = Record.of(queue), int(queue["metadata"]["generation"])
    return generation if record is None else record.version + generation - record.generation


def activation_of(queue: Mapping[str, Any]) -> ActivationState:
    """Return whether a queue admits; a stopped one is a quota that is switched off."""
    stopped = (_spec(queue).get("stopPolicy") or "None") != "None"
    return ActivationState.DISABLED if stopped else ActivationState.ENABLED


def _spec(queue: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a queue requests: Kueue's definition lets it be left out."""
    spec: Mapping[str, Any] = queue.get("spec") or {}
    return spec


def quotas_of(
    reading: Reading, queues: Iterable[Mapping[str, Any]], beside: Iterable[Mapping[str, Any]]
) -> tuple[ComputeQuota, ...]:
    """Return the quotas that the ClusterQueues stand for, by name; queues that belong to no team are left out.

    `beside` are the cluster's namespaces, flavors and local queues: a quota whose other objects are gone or bent has
    status `UpdateFailed`, which the next plan fixes.
    """
    others = {_key(item): item for item in beside}
    found = [quota_of(reading, queue, others) for queue in queues if _team(queue)]
    return tuple(sorted(found, key=lambda quota: quota.name))


def quota_of(
    reading: Reading, queue: Mapping[str, Any], beside: Mapping[tuple[str, str, str], Mapping[str, Any]]
) -> ComputeQuota:
    """Return the quota of one team's queue."""
    team, record, spec = _team(queue), Record.of(queue), _spec(queue)
    config = record.config if record else ComputeQuotaConfig()
    weight, activation = (record.weight if record else weight_of(spec)), activation_of(queue)
    rendered = reading.rendered(team, config, weight, activation)
    if record is None or _bent(rendered, queue):
        config, weight = config_of(spec, reading.table, config), weight_of(spec)
        rendered = reading.rendered(team, config, weight, activation)
    wrong = [*_bent(rendered, queue), *_missing(rendered, beside)]
    status, failure = _status(queue, wrong)
    return ComputeQuota(
        compute_quota_id=reading.quota_id(team),
        name=record.name if record else f"{team}-quota",
        compute_quota_version=version_of(queue),
        status=status,
        failure_reason=failure,
        cluster_arn=reading.cluster_arn,
        compute_quota_config=config,
        compute_quota_target=ComputeQuotaTarget(team_name=team, fair_share_weight=weight),
        activation_state=activation,
    )


def _status(queue: Mapping[str, Any], wrong: list[str]) -> tuple[str, str | None]:
    """Return the status in the words of the SageMaker API, and why when it is not a good one."""
    metadata = queue["metadata"]
    if metadata.get("deletionTimestamp"):
        return "Deleting", None
    if ownership_of(queue) is Ownership.FOREIGN:
        return FOREIGN, f"ClusterQueue {metadata['name']} was made by {_makers(queue)}, and taskgov wrote nothing of it"
    if wrong:
        return "UpdateFailed", "; ".join(wrong)
    new = version_of(queue) == 1
    if not _is_seen(queue):
        return ("Creating" if new else "Updating"), None
    return ("Created" if new else "Updated"), None


def _is_seen(queue: Mapping[str, Any]) -> bool:
    """Return whether Kueue has taken in the queue as it is now: it is active, or stopped on purpose."""
    conditions = (queue.get("status") or {}).get("conditions", ())
    active = next((condition for condition in conditions if condition["type"] == "Active"), None)
    if active is None or active.get("observedGeneration", 0) < queue["metadata"]["generation"]:
        return False
    return bool(active["status"] == "True" or active["reason"] == _STOPPED)


def _bent(rendered: RenderedObjects, queue: Mapping[str, Any]) -> list[str]:
    """Say which fields of a queue are not as rendered."""
    [wanted] = rendered.cluster_queues
    want, have = (comparable(spec, wanted["spec"]) for spec in (wanted["spec"], _spec(queue)))
    return [
        f"spec.{key} of ClusterQueue {queue['metadata']['name']} was changed" for key in want if want[key] != have[key]
    ]


def _missing(rendered: RenderedObjects, beside: Mapping[tuple[str, str, str], Mapping[str, Any]]) -> Iterator[str]:
    """Say what of a quota's other objects is gone, or is not what it was."""
    for item in (*rendered.namespaces, *rendered.resource_flavors, *rendered.local_queues):
        key = _key(item)
        found = beside.get(key)
        if found is None or found["metadata"].get("deletionTimestamp"):
            yield f"{key[0]} {key[2]} is missing"
        elif not _covers(found.get("spec") or {}, item.get("spec", {})) or not _covers(
            found["metadata"].get("labels") or {}, item["metadata"].get("labels", {})
        ):
            yield f"{key[0]} {key[2]} was changed"


def _covers(have: Any, want: Any) -> bool:
    """Return whether everything that is wanted is there; what else is there is somebody else's business."""
    if isinstance(want, Mapping):
        return isinstance(have, Mapping) and all(_covers(have.get(key), value) for key, value in want.items())
    return bool(have == want)


def _makers(queue: Mapping[str, Any]) -> str:
    owners = {entry["manager"] for entry in queue["metadata"].get("managedFields", ()) if "subresource" not in entry}
    return ", ".join(sorted(owners)) or "somebody"


def _team(queue: Mapping[str, Any]) -> str:
    return names.team_of_cluster_queue(queue["metadata"]["name"]) or ""


def _key(item: Mapping[str, Any] | Manifest) -> tuple[str, str, str]:
    metadata = item["metadata"]
    return item["kind"], metadata.get("namespace", ""), metadata["name"]
