"""Answer the calls for compute quotas and scheduler configs: versions, conflicts, statuses that settle.

What the API documents is done as documented (shapes, limits, error names, versions). Which error is given for which
cause and how long a write takes to settle is inferred (`taskgov.hyperpod.inferred`), and so is that an update replaces
the config that it gives.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from taskgov.hyperpod.inferred import (
    LIMIT_REACHED,
    NAME_TAKEN,
    SETTLE_SECONDS,
    STALE_VERSION,
    STILL_SETTLING,
    UNKNOWN_CLUSTER,
)
from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.sagemaker import listing
from taskgov_embedded.sagemaker.governed import COMPUTE_QUOTA, SCHEDULER_CONFIG, Governed, Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call


DEFAULTS: Mapping[str, Any] = {"ActivationState": "Enabled"}


@dataclass(slots=True)
class PlannedSettling:
    """How the next `times` writes of an operation settle: in `...Failed` with a `reason`, or after `seconds`."""

    operation: str
    times: int
    reason: str | None = None
    seconds: float | None = None


class Governance:
    """Both kinds of object of the account."""

    def __init__(self, account: Account, clusters: Mapping[str, Any]) -> None:
        self.settle_seconds: float = SETTLE_SECONDS
        self.limit_per_cluster = 100
        self.late_seconds: float = 0.0
        """How far List answers are behind: they show what was there so long ago."""
        self._account = account
        self._clusters = clusters
        self._objects: dict[str, Governed] = {}
        self._number = itertools.count(1)
        self._deleted: list[Governed] = []
        self._planned: list[PlannedSettling] = []
        self._hooks: dict[str, list[Callable[[Mapping[str, Any]], None]]] = {
            COMPUTE_QUOTA.name: [],
            SCHEDULER_CONFIG.name: [],
        }

    def operations(self) -> dict[str, Callable[[Call], Mapping[str, Any]]]:
        """Return the handlers by operation."""
        found: dict[str, Callable[[Call], Mapping[str, Any]]] = {}
        for kind in (COMPUTE_QUOTA, SCHEDULER_CONFIG):
            found |= {
                f"Create{kind.name}": partial(self._create, kind),
                f"Update{kind.name}": partial(self._update, kind),
                f"Describe{kind.name}": partial(self._describe, kind),
                f"List{kind.name}s": partial(self._list, kind),
                f"Delete{kind.name}": partial(self._delete, kind),
            }
        return found

    def on_settled(self, kind: Kind, hook: Callable[[Mapping[str, Any]], None]) -> None:
        """Call `hook` with the Describe answer whenever an object's status settles (`Deleted` when it is gone)."""
        self._hooks[kind.name].append(hook)

    def fail_next(self, operation: str, reason: str, times: int = 1) -> None:
        """Let the next writes of an operation be taken, and end in `CreateFailed`, `UpdateFailed` or `DeleteFailed`."""
        self._planned.append(PlannedSettling(operation, times, reason=reason))

    def delay_next(self, operation: str, seconds: float) -> None:
        """Let the next write of an operation take so long to settle."""
        self._planned.append(PlannedSettling(operation, 1, seconds=seconds))

    def forget_faults(self) -> None:
        """Let writes from now on settle as they do, and lists show what is there."""
        self._planned.clear()
        self.late_seconds = 0.0

    def present(self, kind: Kind, cluster_arn: str) -> list[dict[str, Any]]:
        """Return what there is of a kind in a cluster, as Describe shows it, by name."""
        found = sorted(self._in_cluster(kind, cluster_arn), key=lambda governed: governed.name)
        return [governed.describe() for governed in found]

    def _in_cluster(self, kind: Kind, arn: str) -> list[Governed]:
        return [known for known in self._objects.values() if known.kind is kind and known.cluster_arn == arn]

    def _create(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        params = call.params
        self._refuse_create(kind, params)
        object_id = _new_id(f"{kind.name}/{params['Name']}/{next(self._number)}")
        made = Governed(
            kind=kind,
            id=object_id,
            arn=self._account.place.arn("sagemaker", f"{kind.arn_part}/{object_id}"),
            name=params["Name"],
            cluster_arn=params["ClusterArn"],
            created=self._account.clock.now,
            created_by=_user_context(call),
            versions=[_spec(kind, {**_defaults(kind), **params})],
        )
        self._objects[object_id] = made
        self._settle_later(made, "Create")
        return {f"{kind.name}Arn": made.arn, f"{kind.name}Id": made.id}

    def _refuse_create(self, kind: Kind, params: Mapping[str, Any]) -> None:
        arn = params["ClusterArn"]
        if arn not in self._clusters:
            raise AwsError(UNKNOWN_CLUSTER, f"Cluster {arn} does not exist.")
        others = self._in_cluster(kind, arn)
        if kind.one_per_cluster and others:
            raise AwsError(NAME_TAKEN, f"Cluster {arn} already has the {kind.name} {others[0].arn}.")
        if any(other.name == params["Name"] for other in others):
            raise AwsError(NAME_TAKEN, f"A {kind.name} with the name {params['Name']} already exists.")
        if len(others) >= self.limit_per_cluster:
            raise AwsError(LIMIT_REACHED, f"A cluster can have {self.limit_per_cluster} of {kind.name}.")

    def _update(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        governed = self._find(kind, call.params)
        self._refuse_in_flight(governed)
        target = call.params["TargetVersion"]
        if target != governed.version:
            message = f"TargetVersion {target} is not the current version {governed.version} of {governed.arn}."
            raise AwsError(STALE_VERSION, message)
        governed.versions.append(governed.versions[-1] | _spec(kind, call.params))
        governed.status, governed.failure = "Updating", None
        governed.modified, governed.modified_by = self._account.clock.now, _user_context(call)
        self._settle_later(governed, "Update")
        return {f"{kind.name}Arn": governed.arn, f"{kind.name}Version": governed.version}

    def _describe(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        governed = self._find(kind, call.params)
        version = call.params.get(f"{kind.name}Version")
        if version is not None and not 1 <= version <= governed.version:
            raise AwsError("ResourceNotFound", f"{governed.arn} has no version {version}.")
        return governed.describe(version)

    def _list(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        asked = call.params
        shown = [
            summary
            for summary in self._summaries(kind)
            if asked.get("ClusterArn") in {None, summary["ClusterArn"]}
            and asked.get("Status") in {None, summary["Status"]}
            and asked.get("NameContains", "") in summary["Name"]
        ]
        key = asked.get("SortBy", "CreationTime")
        return listing.page(shown, asked, kind.summaries, "CreationTime", (key, "Name"))

    def _summaries(self, kind: Kind) -> Iterator[Mapping[str, Any]]:
        """Return what List shows of a kind: what is there, or what was there so long ago."""
        if not self.late_seconds:
            return (governed.summary() for governed in self._objects.values() if governed.kind is kind)
        moment = self._account.clock.now - timedelta(seconds=self.late_seconds)
        known = (governed for governed in (*self._objects.values(), *self._deleted) if governed.kind is kind)
        return (shown for governed in known if (shown := governed.summary_at(moment)) is not None)

    def _delete(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        governed = self._find(kind, call.params)
        self._refuse_in_flight(governed)
        governed.status, governed.failure = "Deleting", None
        self._settle_later(governed, "Delete")
        return {}

    def _find(self, kind: Kind, params: Mapping[str, Any]) -> Governed:
        object_id = params[f"{kind.name}Id"]
        governed = self._objects.get(object_id)
        if governed is None or governed.kind is not kind:
            raise AwsError("ResourceNotFound", f"{kind.name} {object_id} does not exist.")
        return governed

    def _refuse_in_flight(self, governed: Governed) -> None:
        if governed.status in {"Creating", "Updating", "Deleting"}:
            raise AwsError(STILL_SETTLING, f"{governed.arn} is in status {governed.status}.")

    def _settle_later(self, governed: Governed, operation: str) -> None:
        governed.remember(self._account.clock.now)
        planned = self._take_planned(f"{operation}{governed.kind.name}")
        seconds = self.settle_seconds if planned is None or planned.seconds is None else planned.seconds
        failure = None if planned is None else planned.reason
        self._account.clock.after(seconds, partial(self._settle, governed, operation, failure))

    def _settle(self, governed: Governed, operation: str, failure: str | None) -> None:
        governed.failure = failure
        governed.status = f"{operation}Failed" if failure else f"{operation}d"
        self._account.timeline.add(
            "settled", f"{governed.kind.name} {governed.name} {governed.status}", arn=governed.arn, reason=failure
        )
        governed.remember(self._account.clock.now, gone=governed.status == "Deleted")
        if governed.status == "Deleted":
            self._deleted.append(self._objects.pop(governed.id))
        for hook in self._hooks[governed.kind.name]:
            hook(governed.describe())

    def _take_planned(self, operation: str) -> PlannedSettling | None:
        for planned in self._planned:
            if planned.operation == operation and planned.times > 0:
                planned.times -= 1
                return planned
        return None


def _defaults(kind: Kind) -> Mapping[str, Any]:
    return {key: value for key, value in DEFAULTS.items() if key in kind.spec}


def _spec(kind: Kind, params: Mapping[str, Any]) -> dict[str, Any]:
    return {key: params[key] for key in kind.spec if params.get(key) is not None}


def _user_context(call: Call) -> Mapping[str, Any]:
    return {"IamIdentity": {"Arn": call.principal.arn, "PrincipalId": call.principal.name}}


def _new_id(seed: str) -> str:
    """Return twelve characters of a-z and 0-9, the same for the same seed."""
    number = int.from_bytes(hashlib.sha256(seed.encode()).digest()[:10])
    digits = "0123456789abcdefghijklmnopqrstuvwxyz"
    return "".join(digits[number // 36**place % 36] for place in range(12))
