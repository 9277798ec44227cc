"""The names under which owners of jobs are kept. The first measurement that needs the key of their hashes creates it.

While the key cannot be read, nobody is named: measuring continues, and the error is reported.
"""

import secrets
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from taskgov.errors import ConflictError, GovernanceError, UpstreamError
from taskgov.ports import Clock, VersionedDocuments
from taskgov.services.failures import Failures
from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov.snapshot.model import KubernetesObject
from taskgov.work.owners import KEY_BYTES, Naming, name_of, named

KEY: Final = "memory/owners.key"
AGAIN: Final = timedelta(seconds=50)
"""How long a key that could not be read is not read again: a measurement tries once, not for each workload."""


@dataclass(slots=True)
class NamedOwners:
    """Names the owners of Workloads. Its first fields are the ports it uses."""

    documents: VersionedDocuments
    failures: Failures
    clock: Clock
    label: str
    """The annotation or label that has the owner's name."""
    naming: Naming
    _key: bytes = field(default=b"", repr=False)
    _failed_at: datetime | None = None

    def of(self, item: KubernetesObject) -> str | None:
        """Return how the owner of a Workload is kept; None where nobody is named, or owners are not kept."""
        name = name_of(item, self.label)
        if name is None or self.naming == Naming.NONE:
            return None
        if self.naming == Naming.HASHED and not self._key:
            self._key = self._key_or_none()
            if not self._key:
                return None
        return named(name, self.naming, self._key)

    def _key_or_none(self) -> bytes:
        """Return the stack's key; nothing where it cannot be read."""
        now = self.clock.now()
        if self._failed_at is not None and now - self._failed_at < AGAIN:
            return b""
        try:
            return self._made_once()
        except GovernanceError as error:
            self._failed_at = now
            self.failures.report(ALL_CLUSTERS, "read the key of the owners", error)
            return b""

    def _made_once(self) -> bytes:
        """Return the stack's key; of two that make it at once the first one's counts."""
        if (found := self.documents.find_version(KEY)) is None:
            with suppress(ConflictError):
                self.documents.put_version(KEY, secrets.token_bytes(KEY_BYTES), "application/octet-stream", None)
            found = self.documents.find_version(KEY)
        if found is None or len(found.body) != KEY_BYTES:
            raise UpstreamError(f"{KEY} is not a key of {KEY_BYTES} bytes; delete it, and owners get other hashes")
        return found.body
