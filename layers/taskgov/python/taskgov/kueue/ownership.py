"""Whose is an object of the cluster? Made by taskgov, adopted, somebody else's, or not there.

Server-side apply keeps for every field who owns it. What taskgov created carries a mark as well: only that may ever be
deleted.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

FIELD_MANAGER: Final = "taskgov"
MADE: Final = "taskgov/made"
"""The annotation on what taskgov created itself."""


class Ownership(StrEnum):
    """Whose an object is."""

    ABSENT = "absent"
    MADE = "made"
    ADOPTED = "adopted"
    FOREIGN = "foreign"


def ownership_of(found: Mapping[str, Any] | None) -> Ownership:
    """Return whose an object is, as it was read; None stands for one that is not there."""
    if found is None:
        return Ownership.ABSENT
    if MADE in (found["metadata"].get("annotations") or {}):
        return Ownership.MADE
    owners = {entry["manager"] for entry in found["metadata"].get("managedFields", ())}
    return Ownership.ADOPTED if FIELD_MANAGER in owners else Ownership.FOREIGN


def marked(wanted: Mapping[str, Any], ownership: Ownership, **annotations: str) -> dict[str, Any]:
    """Return what to apply: with the mark on what we make, and with these annotations.

    Both have to be in every later apply, or the server takes them away.
    """
    if ownership in {Ownership.ABSENT, Ownership.MADE}:
        annotations = {**annotations, MADE: "true"}
    metadata = wanted["metadata"]
    if annotations:
        metadata = {**metadata, "annotations": {**metadata.get("annotations", {}), **annotations}}
    return {**wanted, "metadata": metadata}
