"""Keys of a policy document that the grammar does not know, each with the key that may have been meant.

pydantic refuses unknown keys too, but lets a field's Python name (`headroom_percent`) pass without reading it: a
guarantee that is silently not made. So keys are compared here, with the spelling of the document alone.
"""

import difflib
from collections.abc import Iterator
from typing import Any, Final, get_args, get_origin

from pydantic import BaseModel

from taskgov.policy.document import PolicyDocument
from taskgov.violations import Location, Violation, path_of, value_of

WEIGHT: Final = "FairShareWeight"
"""May stand in a team's quota although the API has it in the target (`taskgov.policy.parse`)."""


def unknown_keys(data: dict[str, Any]) -> Iterator[Violation]:
    """Yield a violation for each key that nothing reads."""
    yield from _unknown(data, PolicyDocument, ())


def _unknown(value: Any, annotation: Any, location: Location) -> Iterator[Violation]:
    model, inner = _read_as(annotation)
    if model is not None and isinstance(value, dict):
        yield from _unknown_in(value, model, location)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _unknown(entry, inner, (*location, index))
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from _unknown(entry, inner, (*location, key))


def _unknown_in(mapping: dict[str, Any], model: type[BaseModel], location: Location) -> Iterator[Violation]:
    fields = {field.alias or name: field.annotation for name, field in model.model_fields.items()}
    known = [*fields, WEIGHT] if location[-1:] == ("quota",) else list(fields)
    for key, value in mapping.items():
        if key in fields:
            yield from _unknown(value, fields[key], (*location, key))
        elif key not in known:
            yield Violation(path_of((*location, key)), value_of(value), _hint(key, known))


def _hint(key: str, known: list[str]) -> str:
    by_letters = {_letters(candidate): candidate for candidate in known}
    close = difflib.get_close_matches(_letters(key), by_letters, n=1)
    if close:
        return f"is an unknown key; did you mean {by_letters[close[0]]}?"
    return f"is an unknown key; known are {', '.join(known)}"


def _letters(key: str) -> str:
    return key.lower().replace("_", "").replace("-", "")


def _read_as(annotation: Any) -> tuple[type[BaseModel] | None, Any]:
    """Return the model that reads a mapping here, or what reads the entries of a list or mapping."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation, None
    if get_origin(annotation) in (tuple, dict):
        entries = [entry for entry in get_args(annotation) if entry is not ...]
        return None, entries[-1]
    for argument in get_args(annotation):
        model, inner = _read_as(argument)
        if model is not None or inner is not None:
            return model, inner
    return None, None
