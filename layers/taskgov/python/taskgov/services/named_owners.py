"""By which name are the owners of jobs kept? The key of their hashes is made once, by the look that needs it first."""

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from taskgov.errors import ConflictError, UpstreamError
from taskgov.ports import VersionedDocuments
from taskgov.snapshot.model import KubernetesObject
from taskgov.work.owners import KEY_BYTES, Naming, name_of, named

KEY: Final = "memory/owners.key"


@dataclass(slots=True)
class NamedOwners:
    """Names the owners of Workloads. Its first field is the port it uses."""

    documents: VersionedDocuments
    label: str
    """The annotation or label that has the owner's name."""
    naming: Naming
    _key: bytes = field(default=b"", repr=False)

    def of(self, item: KubernetesObject) -> str | None:
        """Return how the owner of a Workload is kept; None where nobody is named, or owners are not kept."""
        name = name_of(item, self.label)
        if name is None or self.naming is Naming.NONE:
            return None
        if self.naming is Naming.HASHED and not self._key:
            self._key = self._made_once()
        return named(name, self.naming, self._key)

    def _made_once(self) -> bytes:
        """Return the stack's key; of two that make it at once the first one's counts."""
        if (found := self.documents.find_version(KEY)) is None:
            with suppress(ConflictError):
                self.documents.put_version(KEY, secrets.token_bytes(KEY_BYTES), "application/octet-stream", None)
            found = self.documents.find_version(KEY)
        if found is None or len(found.body) != KEY_BYTES:
            raise UpstreamError(f"{KEY} is no key of {KEY_BYTES} bytes; delete it, and owners get other hashes")
        return found.body
