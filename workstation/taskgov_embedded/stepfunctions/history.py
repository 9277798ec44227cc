"""Keep the history of an execution, and write it as GetExecutionHistory gives it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

_DATA = frozenset({"input", "output", "parameters"})
"""Details that the API gives as JSON in text."""


@dataclass(slots=True)
class History:
    """Events in the order in which they happened; they are written out on request."""

    _events: list[tuple[datetime, str, dict[str, Any]]] = field(default_factory=list)

    def add(self, moment: datetime, kind: str, details: dict[str, Any]) -> None:
        """Keep an event; data among the details is kept as it is and must not change."""
        self._events.append((moment, kind, details))

    def __len__(self) -> int:
        return len(self._events)

    def written(self) -> list[dict[str, Any]]:
        """Return the events with their numbers, each after the one before it."""
        return [
            {"id": number, "previousEventId": number - 1, "timestamp": moment, "type": kind} | _details(kind, details)
            for number, (moment, kind, details) in enumerate(self._events, start=1)
        ]


def _details(kind: str, details: dict[str, Any]) -> dict[str, Any]:
    if not details:
        return {}
    written = {name: json.dumps(value) if name in _DATA else value for name, value in details.items()}
    written |= {f"{name}Details": {"truncated": False} for name in ("input", "output") if name in details}
    return {f"{_member(kind)}EventDetails": {name: value for name, value in written.items() if value is not None}}


def _member(kind: str) -> str:
    """Name the details of a kind of event, which all states share when they are entered or left.

    >>> _member("TaskStateEntered"), _member("TaskFailed")
    ('stateEntered', 'taskFailed')
    """
    for shared in ("StateEntered", "StateExited"):
        if kind.endswith(shared):
            kind = shared
    return kind[0].lower() + kind[1:]
