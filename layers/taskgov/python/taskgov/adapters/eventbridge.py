"""The project's own event bus."""

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from taskgov.adapters.errors import translated
from taskgov.contracts.task_events import SOURCE
from taskgov.errors import GovernanceError, UpstreamError

if TYPE_CHECKING:
    from mypy_boto3_events import EventBridgeClient
    from mypy_boto3_events.type_defs import PutEventsRequestEntryTypeDef, PutEventsResultEntryTypeDef

ENTRIES = 10
"""Events in one call of PutEvents, at most; ours are far below the 256 KiB that a call takes."""


class Bus:
    """The `EventBus` port over one EventBridge bus."""

    def __init__(self, client: "EventBridgeClient", name: str) -> None:
        self._client = client
        self._name = name

    def publish(self, detail_type: str, detail: Mapping[str, Any]) -> None:
        """Publish one event. PutEvents answers 200 for refused entries too, so the answer is read."""
        with translated(f"publish {detail_type}"):
            answer = self._client.put_events(Entries=[self._entry(detail_type, detail)])
        if answer["FailedEntryCount"]:
            raise UpstreamError(f"publish {detail_type}: {_why(answer['Entries'][0])}")

    def publish_all(self, events: Sequence[tuple[str, Mapping[str, Any]]]) -> Mapping[int, str]:
        """Publish events, ten in a call; a call that fails refuses its own, and those after it are not tried."""
        refused: dict[int, str] = {}
        for start in range(0, len(events), ENTRIES):
            entries = [self._entry(*event) for event in events[start : start + ENTRIES]]
            try:
                with translated(f"publish {len(entries)} events"):
                    answer = self._client.put_events(Entries=entries)
            except GovernanceError as error:
                return refused | dict.fromkeys(range(start, len(events)), f"{type(error).__name__}: {error}")
            failed = enumerate(answer["Entries"], start) if answer["FailedEntryCount"] else ()
            refused |= {place: _why(entry) for place, entry in failed if entry.get("ErrorCode")}
        return refused

    def _entry(self, detail_type: str, detail: Mapping[str, Any]) -> "PutEventsRequestEntryTypeDef":
        return {
            "Source": SOURCE,
            "DetailType": detail_type,
            "Detail": json.dumps(detail, ensure_ascii=False),  # a letter of three bytes would take six
            "EventBusName": self._name,
        }


def _why(entry: "PutEventsResultEntryTypeDef") -> str:
    return f"{entry.get('ErrorCode')}: {entry.get('ErrorMessage')}"
