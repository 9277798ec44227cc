"""A snapshot as bytes and back: what travels between the steps, and what a plan's identity rests on.

Canonical: keys sorted, no spaces, defaults left out, times in UTC, so that the same snapshot always gives the same
bytes and the same digest.
"""

import hashlib
import json
from dataclasses import fields, replace
from functools import cache

from pydantic import TypeAdapter

from taskgov.snapshot.model import KueueObjects, Snapshot


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """Return the canonical bytes of a snapshot."""
    rest = replace(snapshot, kueue=KueueObjects())
    data = _adapter().dump_python(rest, mode="json", by_alias=True, exclude_defaults=True)
    # Raw JSON already, and by far the most of it: a copy of tens of thousands of workloads would take hundreds of MiB.
    kueue = {each.name: objects for each in fields(KueueObjects) if (objects := getattr(snapshot.kueue, each.name))}
    if kueue:
        data["kueue"] = kueue
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")  # half a surrogate pair, in a field that nobody reads, is no reason to fail


def snapshot_from_json(text: bytes) -> Snapshot:
    """Return the snapshot that `snapshot_to_json` wrote. Raises `ValueError` (pydantic) for anything else."""
    return _adapter().validate_json(text)


def snapshot_sha256(snapshot: Snapshot) -> str:
    """Return the digest of the snapshot's canonical bytes, in hexadecimal."""
    return hashlib.sha256(snapshot_to_json(snapshot)).hexdigest()


@cache
def _adapter() -> TypeAdapter[Snapshot]:
    return TypeAdapter(Snapshot)
