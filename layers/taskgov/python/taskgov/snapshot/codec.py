"""A snapshot as bytes and back: what travels between the steps, and what a plan's identity rests on.

Canonical: keys sorted, no spaces, defaults left out, times in UTC, so that the same snapshot always gives the same
bytes and the same digest. Kubernetes' objects are in their own form, everything else as `taskgov.json_form` says.
"""

import hashlib
import json
from dataclasses import fields, replace
from functools import cache

from taskgov.json_form import JsonForm, member_of
from taskgov.snapshot.model import KueueObjects, Snapshot


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """Return the canonical bytes of a snapshot."""
    rest = replace(snapshot, kueue=KueueObjects())
    data = _form().data(rest, without_defaults=True)
    # Raw JSON already, and by far the most of it: a copy of tens of thousands of workloads would take hundreds of MiB.
    kueue = {
        member_of(field.name): objects
        for field in fields(KueueObjects)
        if (objects := getattr(snapshot.kueue, field.name))
    }
    if kueue:
        data["kueue"] = kueue
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")  # half a surrogate pair, in a field that nobody reads, is no reason to fail


def snapshot_from_json(text: bytes) -> Snapshot:
    """Return the snapshot that `snapshot_to_json` wrote, now or in a release before. Raises `ValueError` (pydantic)."""
    return _form().read(text)


def snapshot_sha256(snapshot: Snapshot) -> str:
    """Return the digest of the snapshot's canonical bytes, in hexadecimal."""
    return hashlib.sha256(snapshot_to_json(snapshot)).hexdigest()


@cache
def _form() -> JsonForm[Snapshot]:
    return JsonForm(Snapshot)
