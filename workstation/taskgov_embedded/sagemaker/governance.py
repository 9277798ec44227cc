"""Answer the calls for compute quotas and scheduler configs: versions, conflicts, statuses that settle.

What the API documents is done as documented (shapes, limits, error names, versions). What it does not is inferred, and
said here: a write while another one settles is a ConflictException, an update replaces the config that it gives, and an
unknown cluster is a ValidationException.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

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
        self.settle_seconds: float = 5.0
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

    def delay_next(self, operation: str, seconds: float, times: int = 1) -> None:
        """Let the next writes of an operation take so long to settle."""
        self._planned.append(PlannedSettling(operation, times, seconds=seconds))

    def forget_faults(self) -> None:
        """Let writes from now on settle as they do, and lists show what is there."""
        self._planned.clear()
        self.late_seconds = 0.0

    def present(self, kind: Kind, cluster_arn: str) -> list[dict[str, Any]]:
        """Return what there is of a kind in a cluster, as Describe shows it, by name."""
        found = [one for one in self._objects.values() if one.kind is kind and one.cluster_arn == cluster_arn]
        return [one.describe() for one in sorted(found, key=lambda one: one.name)]

    def _create(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        params = call.params
        self._refuse_create(kind, params)
        one_id = _new_id(f"{kind.name}/{params['Name']}/{next(self._number)}")
        made = Governed(
            kind=kind,
            id=one_id,
            arn=self._account.place.arn("sagemaker", f"{kind.arn_part}/{one_id}"),
            name=params["Name"],
            cluster_arn=params["ClusterArn"],
            created=self._account.clock.now,
            created_by=_user_context(call),
            versions=[_spec(kind, {**_defaults(kind), **params})],
        )
        self._objects[one_id] = made
        self._settle_later(made, "Create")
        return {f"{kind.name}Arn": made.arn, f"{kind.name}Id": made.id}

    def _refuse_create(self, kind: Kind, params: Mapping[str, Any]) -> None:
        arn = params["ClusterArn"]
        if arn not in self._clusters:
            raise AwsError("ValidationException", f"Cluster {arn} does not exist.")
        others = [one for one in self._objects.values() if one.kind is kind and one.cluster_arn == arn]
        if kind.one_per_cluster and others:
            raise AwsError("ConflictException", f"Cluster {arn} already has the {kind.name} {others[0].arn}.")
        if any(one.name == params["Name"] for one in others):
            raise AwsError("ConflictException", f"A {kind.name} with the name {params['Name']} already exists.")
        if len(others) >= self.limit_per_cluster:
            raise AwsError("ResourceLimitExceeded", f"A cluster can have {self.limit_per_cluster} of {kind.name}.")

    def _update(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        one = self._find(kind, call.params)
        self._refuse_in_flight(one)
        target = call.params["TargetVersion"]
        if target != one.version:
            message = f"TargetVersion {target} is not the current version {one.version} of {one.arn}."
            raise AwsError("ConflictException", message)
        one.versions.append(one.versions[-1] | _spec(kind, call.params))
        one.status, one.failure = "Updating", None
        one.modified, one.modified_by = self._account.clock.now, _user_context(call)
        self._settle_later(one, "Update")
        return {f"{kind.name}Arn": one.arn, f"{kind.name}Version": one.version}

    def _describe(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        one = self._find(kind, call.params)
        version = call.params.get(f"{kind.name}Version")
        if version is not None and not 1 <= version <= one.version:
            raise AwsError("ResourceNotFound", f"{one.arn} has no version {version}.")
        return one.describe(version)

    def _list(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        asked = call.params
        shown = [
            summary
            for summary in self._summaries(kind)
            if asked.get("ClusterArn") in {None, summary["ClusterArn"]}
            and asked.get("Status") in {None, summary["Status"]}
            and asked.get("NameContains", "") in summary["Name"]
        ]
        after, before = asked.get("CreatedAfter"), asked.get("CreatedBefore")
        within = [one for one in shown if listing.created_between(one, "CreationTime", after, before)]
        key = asked.get("SortBy", "CreationTime")
        return listing.page(within, asked, kind.summaries, lambda one: (one[key], one["Name"]))

    def _summaries(self, kind: Kind) -> Iterator[Mapping[str, Any]]:
        """Return what List shows of a kind: what is there, or what was there so long ago."""
        if not self.late_seconds:
            return (one.summary() for one in self._objects.values() if one.kind is kind)
        moment = self._account.clock.now - timedelta(seconds=self.late_seconds)
        known = (one for one in (*self._objects.values(), *self._deleted) if one.kind is kind)
        return (shown for one in known if (shown := one.summary_at(moment)) is not None)

    def _delete(self, kind: Kind, call: Call) -> Mapping[str, Any]:
        one = self._find(kind, call.params)
        self._refuse_in_flight(one)
        one.status, one.failure = "Deleting", None
        self._settle_later(one, "Delete")
        return {}

    def _find(self, kind: Kind, params: Mapping[str, Any]) -> Governed:
        one_id = params[f"{kind.name}Id"]
        one = self._objects.get(one_id)
        if one is None or one.kind is not kind:
            raise AwsError("ResourceNotFound", f"{kind.name} {one_id} does not exist.")
        return one

    def _refuse_in_flight(self, one: Governed) -> None:
        if one.status in {"Creating", "Updating", "Deleting"}:
            raise AwsError("ConflictException", f"{one.arn} is in status {one.status}.")

    def _settle_later(self, one: Governed, operation: str) -> None:
        one.remember(self._account.clock.now)
        planned = self._take_planned(f"{operation}{one.kind.name}")
        seconds = self.settle_seconds if planned is None or planned.seconds is None else planned.seconds
        failure = None if planned is None else planned.reason
        self._account.clock.after(seconds, partial(self._settle, one, operation, failure))

    def _settle(self, one: Governed, operation: str, failure: str | None) -> None:
        one.failure = failure
        one.status = f"{operation}Failed" if failure else f"{operation}d"
        self._account.timeline.add("settled", f"{one.kind.name} {one.name} {one.status}", arn=one.arn, reason=failure)
        one.remember(self._account.clock.now, gone=one.status == "Deleted")
        if one.status == "Deleted":
            self._deleted.append(self._objects.pop(one.id))
        for hook in self._hooks[one.kind.name]:
            hook(one.describe())

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
