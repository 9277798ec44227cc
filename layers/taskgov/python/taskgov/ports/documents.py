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
