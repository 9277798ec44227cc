"""Documents in the governance bucket."""

from contextlib import closing
from dataclasses import dataclass
from hashlib import sha256
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from taskgov.adapters.errors import translated
from taskgov.contracts.steps import Pointer
from taskgov.errors import ConflictError, NotFoundError, UpstreamError
from taskgov.policy.text import MAX_BYTES
from taskgov.ports import PolicyText, StoredVersion

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

POLICY_KEY = "policies/{}.yaml"
REVIEWED = "taskgov-reviewed"
"""Metadata of a document: it is written together with the version that it describes, and cannot be changed later."""
MOST_DOCUMENTS: Final = 64
MOST_BYTES: Final = 4 * 2**20
"""Documents that are kept, and how long one of them may be."""


class Bucket:
    """The `DocumentStore` port over one S3 bucket."""

    def __init__(self, client: "S3Client", name: str) -> None:
        self._client = client
        self._name = name

    def policy(self, cluster_name: str) -> PolicyText | None:
        """Return the cluster's policy document with its version id, or None."""
        # One byte more than a document may have is enough to see that it is too long.
        found = self._read(POLICY_KEY.format(cluster_name), MAX_BYTES + 1)
        return PolicyText(found[0], found[1], found[2].get(REVIEWED, "")) if found else None

    def put(self, key: str, body: bytes, content_type: str) -> Pointer:
        """Store a document."""
        with translated(f"store {key}"):
            self._client.put_object(Bucket=self._name, Key=key, Body=body, ContentType=content_type)
        return Pointer(bucket=self._name, key=key, sha256=sha256(body).hexdigest())

    def get(self, pointer: Pointer) -> bytes:
        """Return a document, checked against the pointer's digest."""
        body = self.find(pointer.key)
        if body is None:
            raise NotFoundError(f"{pointer.key} is not in bucket {self._name}; it may have expired")
        if sha256(body).hexdigest() != pointer.sha256:
            raise UpstreamError(f"{pointer.key} has changed since it was written: its digest is not {pointer.sha256}")
        return body

    def find(self, key: str) -> bytes | None:
        """Return what is stored at a key, or None."""
        found = self._read(key)
        return found[0] if found else None

    def find_version(self, key: str) -> StoredVersion | None:
        """Return what is stored at a key now, with its ETag, or None."""
        try:
            with translated(f"read {key}"):
                answer = self._client.get_object(Bucket=self._name, Key=key)
                return StoredVersion(_body(answer, None), answer["ETag"])
        except NotFoundError:
            return None

    def put_version(self, key: str, body: bytes, content_type: str, instead_of: StoredVersion | None) -> StoredVersion:
        """Store a document by a conditional write (If-Match, If-None-Match). Raises ConflictError."""
        try:
            with translated(f"store {key}"):
                if instead_of is None:
                    answer = self._client.put_object(
                        Bucket=self._name, Key=key, Body=body, ContentType=content_type, IfNoneMatch="*"
                    )
                else:
                    answer = self._client.put_object(
                        Bucket=self._name, Key=key, Body=body, ContentType=content_type, IfMatch=instead_of.mark
                    )
                return StoredVersion(body, answer["ETag"])
        except NotFoundError as error:  # the version to replace was deleted meanwhile
            raise ConflictError(str(error)) from error

    def policy_names(self) -> tuple[str, ...]:
        """Return the names of the clusters that have a policy document."""
        prefix, suffix = POLICY_KEY.split("{}")
        with translated("list policy documents"):
            pages = self._client.get_paginator("list_objects_v2").paginate(Bucket=self._name, Prefix=prefix)
            keys = [found["Key"] for page in pages for found in page.get("Contents", ())]
        named = (key.removeprefix(prefix).removesuffix(suffix) for key in keys if key.endswith(suffix))
        return tuple(sorted(name for name in named if name and "/" not in name))

    def _read(self, key: str, most: int | None = None) -> tuple[bytes, str, dict[str, str]] | None:
        try:
            with translated(f"read {key}"):
                answer = self._client.get_object(Bucket=self._name, Key=key)
                return _body(answer, most), answer.get("VersionId", ""), answer.get("Metadata", {})
        except NotFoundError:
            return None


class RememberingBucket(Bucket):
    """A bucket of which a document is sent again only when its ETag is another one (If-None-Match).

    For a function that reads the same documents each minute. A document that was stored again with the same content may
    have the version of before: who wrote a version is not to be judged by it.
    """

    def __init__(self, client: "S3Client", name: str) -> None:
        super().__init__(client, name)
        self._known: dict[str, _Known] = {}

    def _read(self, key: str, most: int | None = None) -> tuple[bytes, str, dict[str, str]] | None:
        known = self._known.get(key)
        try:
            with translated(f"read {key}"):
                answer = self._changed(key, known)
                if answer is None and known is not None:
                    return known.body, known.version, known.metadata
                found = _Known(
                    answer["ETag"], _body(answer, most), answer.get("VersionId", ""), answer.get("Metadata", {})
                )
        except NotFoundError:
            self._known.pop(key, None)
            return None
        self._known.pop(key, None)
        if len(found.body) <= MOST_BYTES:
            self._known[key] = found
        if len(self._known) > MOST_DOCUMENTS:
            del self._known[next(iter(self._known))]
        return found.body, found.version, found.metadata

    def _changed(self, key: str, known: "_Known | None") -> Any:
        """Return S3's answer, None when the document is the one that is known."""
        if known is None:
            return self._client.get_object(Bucket=self._name, Key=key)
        try:
            return self._client.get_object(Bucket=self._name, Key=key, IfNoneMatch=known.etag)
        except ClientError as error:
            if error.response.get("ResponseMetadata", {}).get("HTTPStatusCode") != HTTPStatus.NOT_MODIFIED:
                raise
            return None


@dataclass(frozen=True, slots=True)
class _Known:
    """A document as it was read last, as far as it was read."""

    etag: str
    body: bytes
    version: str
    metadata: dict[str, str]


def _body(answer: Any, most: int | None) -> bytes:
    with closing(answer["Body"]) as body:
        text: bytes = body.read(most)
    return text
