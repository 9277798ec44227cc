"""What is left of a broken document, so that rules between its parts can be checked with everything else at once.

`parse_policy` takes off what pydantic refused, piece by piece, until the rest is a document, and then applies the
rules.
"""

from copy import deepcopy
from typing import Any, Final

from pydantic import ValidationError

from taskgov.violations import Location

_STAND_INS: Final[dict[str, Any]] = {
    "apiVersion": "taskgov/v1",
    "cluster": {"name": "cluster", "arn": "arn:aws:sagemaker:us-east-1:000000000000:cluster/000000000000"},
}
"""What stands in for a required part that is missing or broken: nothing else in the document depends on it."""


class Remains:
    """A copy of the document's data from which pieces are taken; list entries keep their first numbers."""

    def __init__(self, data: dict[str, Any]) -> None:
        self.data = deepcopy(data)
        self._numbers: dict[int, list[int]] = {}
        self._number(self.data)

    def drop(self, error: ValidationError) -> None:
        """Take off each value that was refused; the entry or mapping around it where one is missing."""
        places = {_place(details["type"], details["loc"]) for details in error.errors()}
        # Later entries first, so that the numbers of earlier ones still hold.
        for place in sorted(places, key=lambda steps: [(isinstance(step, int), step) for step in steps], reverse=True):
            self._remove(place)
        for key, stand_in in _STAND_INS.items():
            self.data.setdefault(key, deepcopy(stand_in))

    def original(self, location: Location) -> Location:
        """Return where a place in the remains was in the document."""
        value: Any = self.data
        path: list[int | str] = []
        for step in location:
            path.append(self._numbers[id(value)][step] if isinstance(value, list) and isinstance(step, int) else step)
            value = _inside(value, step)
        return tuple(path)

    def _remove(self, place: Location) -> None:
        holder: Any = self.data
        for step in place[:-1]:
            holder = _inside(holder, step)
        if isinstance(holder, dict) and place:
            holder.pop(place[-1], None)
        elif isinstance(holder, list) and isinstance(place[-1], int):
            del holder[place[-1]]
            del self._numbers[id(holder)][place[-1]]

    def _number(self, value: Any) -> None:
        if isinstance(value, list):
            self._numbers[id(value)] = list(range(len(value)))
        if isinstance(value, dict | list):
            for inner in value.values() if isinstance(value, dict) else value:
                self._number(inner)


def _inside(value: Any, step: int | str) -> Any:
    if isinstance(value, dict):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None


def _place(error_type: str, location: Location) -> Location:
    """Return what must go: pydantic marks a refused key with a last step of its own."""
    return location[:-1] if error_type == "missing" or location[-1:] == ("[key]",) else location
