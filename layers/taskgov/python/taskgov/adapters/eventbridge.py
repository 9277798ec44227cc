"""The project's own event bus."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from taskgov.adapters.errors import translated
from taskgov.errors import UpstreamError

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient

SOURCE = "taskgov"


class Bus:
    """The `EventBus` port over one EventBridge bus."""

    def __init__(self, client: "EventBridgeClient", name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Publish one event. PutEvents answers 200 for refused entries too, so the answer is read."""
        with translated(f"publish {detail_type}"):
            answer = self._client.put_events(
                Entries=[
                    {
                        "Source": SOURCE,
                        "DetailType": detail_type,
                        "Detail": json.dumps(detail),
                        "EventBusName": self._name,
                    }
                ]
            )
        if answer["FailedEntryCount"]:
            refused = answer["Entries"][0]
            raise UpstreamError(f"publish {detail_type}: {refused.get('ErrorCode')}: {refused.get('ErrorMessage')}")
