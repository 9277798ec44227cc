"""A snapshot as bytes and back: what travels between the steps, and what a plan's identity rests on.

Canonical: keys sorted, no spaces, defaults left out, times in UTC, so that the same snapshot always gives the same
bytes and the same digest. Kubernetes' objects are in their own form, everything else as `taskgov.json_form` says.
Functions store it as the release before reads it; files and answers have it in camelCase.
"""

import hashlib
import json
from dataclasses import fields, replace
from functools import cache
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from taskgov.json_form import KeptForm, member_of
from taskgov.snapshot.model import KueueObjects, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable

PART: Final = 500
"""Objects of a list that are written at once."""


def snapshot_to_json(snapshot: Snapshot) -> bytes:
    """Return the canonical bytes of a snapshot."""
    return _canonical(snapshot, snapshot_form().data, member_of)


def snapshot_to_store(snapshot: Snapshot) -> bytes:
    """Return the bytes of a snapshot as a run stores them: canonical too, and in the form of `KeptForm`."""
    return _canonical(snapshot, snapshot_form().kept_data, str)


def _canonical(snapshot: Snapshot, data_of: "Callable[..., Any]", named: "Callable[[str], str]") -> bytes:
    data = data_of(replace(snapshot, kueue=KueueObjects()), without_defaults=True)
    # Raw JSON already, and by far the most of it: a copy of tens of thousands of workloads would take hundreds of MiB.
    kueue = {
        named(field.name): objects for field in fields(KueueObjects) if (objects := getattr(snapshot.kueue, field.name))
    }
    if kueue:
        data["kueue"] = kueue
    # Written part by part: the whole as text, beside the bytes, would be as large again.
    written = BytesIO()
    for number, (name, value) in enumerate(sorted(data.items())):
        written.write(b"," if number else b"{")
        _write(written, name, value)
    written.write(b"}")
    return written.getvalue()


def _write(to: BytesIO, name: str, value: Any) -> None:
    """Write a member of an object."""
    to.write(_compact(name) + b":")
    if name == "kueue":
        for number, (kind, objects) in enumerate(sorted(value.items())):
            to.write(b"," if number else b"{")
            _write(to, kind, objects)
        to.write(b"}")
    elif isinstance(value, list | tuple):
        for begin in range(0, len(value), PART):
            to.write(b"," if begin else b"[")
            to.write(_compact(value[begin : begin + PART])[1:-1])
        to.write(b"]" if value else b"[]")
    else:
        to.write(_compact(value))


def _compact(value: Any) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return text.encode(errors="replace")  # half a surrogate pair, in a field that nobody reads, must not fail the write


def snapshot_from_json(text: bytes) -> Snapshot:
    """Return the snapshot that is in a file or was stored, in either form. Raises `ValueError` (pydantic)."""
    return snapshot_form().read(text)


def snapshot_sha256(snapshot: Snapshot) -> str:
    """Return the digest of the bytes that a run stores, in hexadecimal: it is that of the pointer to them."""
    return hashlib.sha256(snapshot_to_store(snapshot)).hexdigest()


@cache
def snapshot_form() -> KeptForm[Snapshot]:
    """Return how snapshots are written and read."""
    return KeptForm(Snapshot)
