"""The JSON of many records when few of them change from one document to the next: each record is written once."""

import json
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, Generic, TypeVar

Record = TypeVar("Record")
COMPACT: Final = (",", ":")


class Rows(Generic[Record]):
    """Keeps the JSON of the records of the last document, by key and by the identity of the object.

    Records must be immutable. The text is exactly that of `json.dumps` for a list of all rows.
    """

    def __init__(self, row: Callable[[Record], Any]) -> None:
        self._row = row
        self._written: dict[Hashable, tuple[Record, str]] = {}

    def to_json(self, records: Iterable[tuple[Hashable, Record]]) -> str:
        """Return the JSON list of what `row` returns for each record, and forget the records that are not in it."""
        before, self._written = self._written, {}
        for key, record in records:
            known = before.get(key)
            if known is None or known[0] is not record:
                known = (record, json.dumps(self._row(record), separators=COMPACT))
            self._written[key] = known
        return f"[{','.join([text for _, text in self._written.values()])}]"
