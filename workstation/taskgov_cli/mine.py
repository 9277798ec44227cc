"""Which tasks are the caller's own? `taskgov jobs --mine` reads caller and owners from the cluster.

Kubernetes answers who calls (SelfSubjectReview, authentication.k8s.io/v1; on EKS the ARN of the user or of the role's
session, unless the access entry gives another name). It keeps nobody's name on an object: `managedFields` has the
client's name, not the person's. So a job is somebody's if it says so in an annotation:

| annotation | who sets it |
| --- | --- |
| `taskgov/submitted-by` | the person who submits the job, as in `examples/jobs/qwen3/1-team-a-training.yaml` |
| `workspace.jupyter.org/created-by` | the operator of interactive spaces, with the Kubernetes name of the creator |

The value is the Kubernetes name, or its last part (`ana` of `arn:aws:sts::111122223333:assumed-role/scientists/ana`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from taskgov.adapters.kubernetes.reader import read_all
from taskgov.adapters.kubernetes.request import Requests
from taskgov.errors import GovernanceError, NotFoundError, UpstreamError
from taskgov.kueue.named import named
from taskgov_cli.own_rights import is_denied

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.adapters.kubernetes.connection import ApiConnections
    from taskgov.ports import ClusterAccess
    from taskgov.snapshot.model import KubernetesObject
    from taskgov.usage.tasks import Task

SUBMITTED_BY: Final = "taskgov/submitted-by"
OWNER_ANNOTATIONS: Final = (SUBMITTED_BY, "workspace.jupyter.org/created-by")
_WHO: Final = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
_REVIEW: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}

JobKey = tuple[str, str, str]
"""Namespace, kind and name of the job that owns a Workload."""
Type = tuple[str, str]
"""API version and kind."""


@dataclass(frozen=True, slots=True)
class Mine:
    """What was found of the caller's own."""

    username: str
    """The name of the caller in Kubernetes."""
    jobs: frozenset[tuple[str, str, str]]
    """Team, kind and job, as in `taskgov.usage.tasks.Task`."""
    unowned: int
    """Number of tasks without a submitter."""
    unseen: tuple[str, ...] = ()
    """Kinds of jobs that the caller may not list: whose these are is not known."""

    def chosen(self, tasks: Iterable[Task]) -> list[Task]:
        """Return the tasks that are the caller's."""
        return [task for task in tasks if (task.team, task.kind, task.job) in self.jobs]


def whoami(api: Requests) -> str:
    """Return the name of the caller in Kubernetes. Raises GovernanceError."""
    answer = api.send("POST", _WHO, "ask Kubernetes who you are", _REVIEW, {})
    name = ((answer.get("status") or {}).get("userInfo") or {}).get("username")
    if not name:
        raise UpstreamError("ask Kubernetes who you are: the answer has no name")
    return str(name)


def is_name_of(username: str, value: str) -> bool:
    """Return whether an annotation's value names the caller.

    Example:
        >>> ana = "arn:aws:sts::111122223333:assumed-role/scientists/ana"
        >>> [is_name_of(ana, value) for value in (ana, "ana", "scientists/ana", "an", "")]
        [True, True, False, False, False]

    """
    return bool(value) and value in {username, username.rpartition("/")[2]}


def mine_of(connections: ApiConnections, cluster: ClusterAccess, workloads: Iterable[KubernetesObject]) -> Mine:
    """Return which jobs are the caller's. Raises GovernanceError.

    Of each kind of job that owns a Workload, the jobs are listed in the namespaces where there are any.
    """
    some = tuple(workloads)
    with connections.open(cluster) as connection:
        api = Requests(connection)
        username = whoami(api)
        owners: dict[JobKey, str] = {}
        unseen: dict[str, None] = {}
        for (version, kind), namespaces in sorted(_types_of(some).items()):
            try:
                path = _path_of(api, version, kind)
                for namespace in sorted(namespaces):
                    owners |= _owners(api, path, kind, namespace)
            except GovernanceError as error:
                if not (is_denied(error) or isinstance(error, NotFoundError)):
                    raise
                unseen[kind] = None
    keys = {_key_of(item): named(item) for item in some}
    found = {key: owners[key] for key in keys if key in owners}
    return Mine(
        username=username,
        jobs=frozenset(
            (keys[key].team, key[1], keys[key].job) for key, by in found.items() if is_name_of(username, by)
        ),
        unowned=sum(key not in owners and key[1] not in unseen for key in keys),
        unseen=tuple(unseen),
    )


def _owner_of(item: KubernetesObject) -> Mapping[str, Any]:
    """Return the reference to the job of a Workload; the Workload itself where nothing owns it."""
    owners = (owner for owner in item["metadata"].get("ownerReferences") or () if owner.get("controller", True))
    itself = {"apiVersion": item.get("apiVersion"), "kind": "Workload", "name": item["metadata"]["name"]}
    return next(owners, itself)


def _key_of(item: KubernetesObject) -> JobKey:
    owner = _owner_of(item)
    return item["metadata"].get("namespace") or "", str(owner.get("kind", "Workload")), str(owner["name"])


def _types_of(workloads: Iterable[KubernetesObject]) -> dict[Type, set[str]]:
    """Return which kinds of jobs own Workloads, and in which namespaces."""
    found: dict[Type, set[str]] = {}
    for item in workloads:
        owner = _owner_of(item)
        version = owner.get("apiVersion") or "kueue.x-k8s.io/v1beta1"  # Kueue's items of a list may come without
        found.setdefault((str(version), str(owner.get("kind", ""))), set()).add(item["metadata"].get("namespace") or "")
    return found


def _path_of(api: Requests, version: str, kind: str) -> tuple[str, str]:
    """Return where a group's version is served and the plural of a kind. Raises NotFoundError."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    resources = api.get(root, f"ask for {version}")["resources"]
    plural = next(
        (resource["name"] for resource in resources if resource["kind"] == kind and "/" not in resource["name"]), None
    )
    if plural is None:
        raise NotFoundError(f"{version} serves no {kind}")
    return root, str(plural)


def _owners(api: Requests, path: tuple[str, str], kind: str, namespace: str) -> dict[JobKey, str]:
    """Return who submitted the jobs of one kind in one namespace, as far as they say."""
    root, plural = path
    where = f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
    found: dict[JobKey, str] = {}
    for item in read_all(api, where, _only_whose, f"list {plural} in namespace {namespace}"):
        metadata = item["metadata"]
        annotations = metadata.get("annotations") or {}
        by = next((str(annotations[name]) for name in OWNER_ANNOTATIONS if annotations.get(name)), "")
        if by:
            found[namespace, kind, str(metadata.get("name", ""))] = by
    return found


def _only_whose(item: KubernetesObject) -> KubernetesObject:
    """Keep of a job its name and whose it is: its pods' commands and environment are nobody's business here."""
    metadata = item["metadata"]
    return {"metadata": {"name": metadata["name"], "annotations": metadata.get("annotations")}}
