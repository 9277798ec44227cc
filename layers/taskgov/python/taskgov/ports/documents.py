"""Documents in the bucket."""

from dataclasses import dataclass
from typing import Protocol

from taskgov.contracts.steps import Pointer


@dataclass(frozen=True, slots=True)
class PolicyText:
    """A stored policy document, as far as a document may go (`MAX_BYTES` and one more), and the version of it."""

    body: bytes
    version: str
    reviewed: str = ""
    """Digest of the changes that were reviewed with this version; empty where none were."""


class DocumentStore(Protocol):
    """Documents in the bucket. Raises NotFoundError, ThrottledError, UpstreamError."""

    def policy(self, cluster_name: str) -> PolicyText | None:
        """Return the cluster's policy document, or None when there is none."""
        ...

    def put(self, key: str, body: bytes, content_type: str) -> Pointer:
        """Store a document and return where it is, with its digest."""
        ...

    def get(self, pointer: Pointer) -> bytes:
        """Return a document; UpstreamError when its digest is not the pointer's."""
        ...

    def find(self, key: str) -> bytes | None:
        """Return what is stored at a key, or None."""
        ...

    def policy_names(self) -> tuple[str, ...]:
        """Return the names of the clusters that have a policy document, sorted."""
        ...


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """What is stored at a key, and the mark of this version (S3: the ETag)."""

    body: bytes
    mark: str


class VersionedDocuments(Protocol):
    """Documents that several may write: nobody overwrites what was not read. Raises ThrottledError, UpstreamError."""

    def find_version(self, key: str) -> StoredVersion | None:
        """Return what is stored at a key now, or None."""
        ...

    def put_version(self, key: str, body: bytes, content_type: str, instead_of: StoredVersion | None) -> StoredVersion:
        """Store a document in place of a version, or where there is none; return what is stored then.

        Raises ConflictError where another version is there.
        """
        ...
