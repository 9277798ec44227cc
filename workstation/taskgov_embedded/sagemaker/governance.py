"""Answer the calls for compute quotas and scheduler configs: versions, conflicts, statuses that settle.

What the API documents is done as documented (shapes, limits, error names, versions). What it does not is inferred, and
said here: a write while another one settles is a ConflictException, an update replaces the config that it gives, and an
unknown cluster is a ValidationException.
"""

from __future__ import annotations

import hashlib
import itertools
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from taskgov_embedded.gateway import AwsError
from taskgov_embedded.sagemaker import listing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from taskgov_embedded.account import Account
    from taskgov_embedded.gateway import Call


DEFAULTS: Mapping[str, Any] = {"ActivationState": "Enabled"}


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

    def _identity(self) -> dict[str, Any]:
        return {f"{self.kind.name}Arn": self.arn, f"{self.kind.name}Id": self.id, "Name": self.name}

    def _status_details(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        config = answer.get("SchedulerConfig")
        if config is None:
            return {}
        return {"StatusDetails": dict.fromkeys(config, self.status)}


@dataclass(slots=True)
class PlannedFailure:
    """The next `times` writes of an operation end in `...Failed` with this reason."""

    operation: str
    reason: str
    times: int


class Governance:
    """Both kinds of object of the account."""

    def __init__(self, account: Account, clusters: Mapping[str, Any]) -> None:
        self.settle_seconds: float = 5.0
        self.limit_per_cluster = 100
        self._account = account
        self._clusters = clusters
        self._objects: dict[str, Governed] = {}
        self._number = itertools.count(1)
        self._failures: list[PlannedFailure] = []
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
        self._failures.append(PlannedFailure(operation, reason, times))

    def forget_failures(self) -> None:
        """Let writes from now on end as they do."""
        self._failures.clear()

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
            one.summary()
            for one in self._objects.values()
            if one.kind is kind
            and asked.get("ClusterArn") in {None, one.cluster_arn}
            and asked.get("Status") in {None, one.status}
            and asked.get("NameContains", "") in one.name
        ]
        after, before = asked.get("CreatedAfter"), asked.get("CreatedBefore")
        within = [one for one in shown if listing.created_between(one, "CreationTime", after, before)]
        key = asked.get("SortBy", "CreationTime")
        return listing.page(within, asked, kind.summaries, lambda one: (one[key], one["Name"]))

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
        failure = self._take_failure(f"{operation}{one.kind.name}")
        self._account.clock.after(self.settle_seconds, partial(self._settle, one, operation, failure))

    def _settle(self, one: Governed, operation: str, failure: str | None) -> None:
        one.failure = failure
        one.status = f"{operation}Failed" if failure else f"{operation}d"
        self._account.timeline.add("settled", f"{one.kind.name} {one.name} {one.status}", arn=one.arn, reason=failure)
        if one.status == "Deleted":
            del self._objects[one.id]
        for hook in self._hooks[one.kind.name]:
            hook(one.describe())

    def _take_failure(self, operation: str) -> str | None:
        for planned in self._failures:
            if planned.operation == operation and planned.times > 0:
                planned.times -= 1
                return planned.reason
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
