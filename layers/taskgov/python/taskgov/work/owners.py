"""How the record of work stores the owner of a job: by name, as a keyed hash, or not at all.

A hash without a key protects no one: anyone with a list of names can hash them all and compare.
"""

import hmac
from enum import StrEnum
from hashlib import sha256
from typing import Final

from taskgov.snapshot.model import KubernetesObject

KEY_BYTES: Final = 32
HASH_LETTERS: Final = 16
"""64 bits: enough that two people of a company never share a hash in practice."""
MOST_LETTERS: Final = 253
"""Most characters of a name. An annotation can have 256 KiB, and the memory has the owner of each workload."""


class Naming(StrEnum):
    """How owners' names are stored: the values of the parameter `WorkOwners`."""

    PLAIN = "plain"
    HASHED = "hashed"
    NONE = "none"


def name_of(item: KubernetesObject, label: str) -> str | None:
    """Return the owner that a Workload's annotation, or else its label, names; None if there is none."""
    metadata = item["metadata"]
    found = ((metadata.get(place) or {}).get(label) for place in ("annotations", "labels"))
    return next((value[:MOST_LETTERS] for value in found if isinstance(value, str) and value), None)


def named(name: str, naming: Naming, key: bytes) -> str | None:
    """Return the name as it is stored: itself, its keyed hash (HMAC-SHA-256, cut to 64 bits), or None.

    Raises `ValueError` if it should be hashed and the key is empty.

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
