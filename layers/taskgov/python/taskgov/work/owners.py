"""By which name does the record of work keep the owner of a job? As it is, as a keyed hash, or not at all.

A hash without a key hides nothing: anyone with a list of people can try them all.
"""

import hmac
from enum import StrEnum
from hashlib import sha256
from typing import Final

from taskgov.snapshot.model import KubernetesObject

KEY_BYTES: Final = 32
HASH_LETTERS: Final = 16
"""64 bits: enough that no two people of a company share a hash."""
MOST_LETTERS: Final = 253
"""Of a name: an annotation may have 256 KiB, and each look keeps the owner of every workload."""


class Naming(StrEnum):
    """How owners' names are kept: the parameter `WorkOwners`."""

    PLAIN = "plain"
    HASHED = "hashed"
    NONE = "none"


def name_of(item: KubernetesObject, label: str) -> str | None:
    """Return the owner that a Workload's annotation or label names; None where it names none."""
    metadata = item["metadata"]
    found = ((metadata.get(place) or {}).get(label) for place in ("annotations", "labels"))
    return next((value[:MOST_LETTERS] for value in found if isinstance(value, str) and value), None)


def named(name: str, naming: Naming, key: bytes) -> str | None:
    """Return how a name is kept: itself, its keyed hash (HMAC-SHA-256, cut), or None.

    Raises `ValueError` for a hash without a key.

    Example:
        >>> named("ana", Naming.HASHED, b"a key"), named("ana", Naming.NONE, b"")
        ('2a92e185ef27fdac', None)

    """
    if naming == Naming.NONE:
        return None
    if naming == Naming.PLAIN:
        return name
    if not key:
        raise ValueError("the owners of jobs are hashed without a key")
    return hmac.new(key, name.encode(), sha256).hexdigest()[:HASH_LETTERS]
