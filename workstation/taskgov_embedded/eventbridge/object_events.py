"""Send the default bus events of objects in buckets whose template switches EventBridge on."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

from moto.s3 import notifications
from moto.s3.models import S3Backend

if TYPE_CHECKING:
    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.patches import Patches
    from taskgov_embedded.eventbridge.bus import Bus

_REASONS = {"Put": "PutObject", "Post": "POST Object", "Copy": "CopyObject"}
_REASONS |= {"CompleteMultipartUpload": "CompleteMultipartUpload"}


class ObjectEvents:
    """S3's `Object Created` and `Object Deleted`; moto sends others of its own making past the bus."""

    def __init__(self, account: Account, bus: Bus) -> None:
        self._account = account
        self._bus = bus
        self._number = itertools.count(1)

    def install(self, patches: Patches) -> None:
        """Take moto's place in sending."""

        def send(_account_id: str, bucket: Any, event_name: str, key: Any) -> None:
            self._send(bucket, str(getattr(event_name, "value", event_name)), key)

        why = "moto sends events of S3 past the bus and in another form"
        patches.replace(notifications, "_send_event_bridge_message", send, why)
        own_mark = S3Backend._set_delete_marker  # noqa: SLF001 the one place where all delete markers come by

        def set_delete_marker(backend: Any, bucket_name: str, key_name: str) -> Any:
            marker = own_mark(backend, bucket_name, key_name)
            bucket = backend.get_bucket(bucket_name)
            configuration = bucket.notification_configuration
            if configuration is not None and configuration.event_bridge is not None:
                self._send(bucket, "s3:ObjectRemoved:DeleteMarkerCreated", marker)
            return marker

        patches.replace(S3Backend, "_set_delete_marker", set_delete_marker, "moto announces no delete markers")

    def _send(self, bucket: Any, event_name: str, key: Any) -> None:
        _, what, how = event_name.split(":")
        detail: dict[str, Any] = {
            "version": "0",
            "bucket": {"name": bucket.name},
            "object": {"key": key.name, "sequencer": f"{next(self._number):018X}"},
            "request-id": f"REQ{next(self._number):013d}",
            "requester": self._account.place.account,
            "source-ip-address": "192.0.2.1",
        }
        if getattr(key, "version_id", None):
            detail["object"]["version-id"] = key.version_id
        if what == "ObjectCreated":
            detail["object"] |= {"size": key.size, "etag": key.etag.strip('"')}
            self._bus.publish("aws.s3", "Object Created", detail | {"reason": _REASONS[how]}, [bucket.arn])
        elif what == "ObjectRemoved":
            kind = "Delete Marker Created" if how == "DeleteMarkerCreated" else "Permanently Deleted"
            gone = detail | {"reason": "DeleteObject", "deletion-type": kind}
            self._bus.publish("aws.s3", "Object Deleted", gone, [bucket.arn])
