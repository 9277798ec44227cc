"""How do rendered Kueue objects get into a cluster that no add-on governs? Server-side apply, only of our own fields.

Every object is in one of four standings. *Absent*: applying creates it, and marks it as made by taskgov. *Made* and
*adopted* (a field of it is taskgov's, but not the mark): applying writes our fields. *Foreign* (nothing of it is
taskgov's): it is left alone until somebody adopts it. A field that another writer owns with another value is a
`ConflictError` that names writer and field; only adoption takes it over. Only what was made is deleted, and only
without running work.
"""

from typing import TYPE_CHECKING, Final

from taskgov.errors import ConflictError, UpstreamError
from taskgov.kueue.ownership import Ownership, marked, ownership_of
from taskgov.kueue.render import Manifest

if TYPE_CHECKING:
    from taskgov.adapters.kubernetes.objects import ObjectApi

TRIES: Final = 8
"""Kueue writes a queue's status whenever work comes or goes; a write that met with one is tried again."""


def applied(api: "ObjectApi", wanted: Manifest, *, force: bool = False, **annotations: str) -> Manifest:
    """Apply one object and return it as stored.

    Raises ConflictError when it is foreign, and, unless forced, when another writer owns one of the fields.
    """
    ownership = ownership_of(api.find(wanted))
    if ownership is Ownership.FOREIGN:
        name = f"{wanted['kind']} {wanted['metadata']['name']}"
        raise ConflictError(f"{name} exists, and taskgov wrote nothing of it: adopt it, or give the team another name")
    return api.patch(marked(wanted, ownership, **annotations), **({"force": "true"} if force else {}))


def deletable(api: "ObjectApi", manifest: Manifest) -> Manifest | None:
    """Return an object as read if it may be deleted, or None when it is gone; ConflictError when it has to stay."""
    found = api.find(manifest)
    if found is None:
        return None
    name = f"{manifest['kind']} {manifest['metadata']['name']}"
    if ownership_of(found) is not Ownership.MADE:
        raise ConflictError(f"{name} was not made by taskgov: it stays")
    if holding := _holding(api, found):
        raise ConflictError(f"{name} has {holding} workloads that hold quota: it stays")
    return found


def delete_judged(api: "ObjectApi", found: Manifest) -> None:
    """Delete what `deletable` returned. Kueue may write its status meanwhile: then it is read and judged once more.

    Raises ConflictError when it has to stay now, UpstreamError when it changes faster than it can be deleted.
    """
    judged: Manifest | None = found
    for _ in range(TRIES):
        if judged is None:
            return None
        try:
            return api.delete(judged)
        except ConflictError:
            judged = deletable(api, found)
    raise UpstreamError(f"{found['kind']} {found['metadata']['name']} changes faster than it can be deleted")


def _holding(api: "ObjectApi", found: Manifest) -> int:
    """Count the workloads that hold quota of a queue: by themselves, because a queue's own count follows later."""
    if found["kind"] != "ClusterQueue":
        return 0
    admissions = (workload.get("status", {}).get("admission") for workload in api.list(found["apiVersion"], "Workload"))
    return sum(
        admission is not None and admission["clusterQueue"] == found["metadata"]["name"] for admission in admissions
    )
