"""Which objects does a list request get? Selectors and pages, as the Kubernetes API has them.

A continue token names the last object of a page; what comes after it in order is the next page, so that objects that
come or go between pages are neither repeated nor an error.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from typing import TYPE_CHECKING, Any, Final

from taskgov_embedded.cluster.objects import key_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from taskgov_embedded.cluster.objects import Key, KubeObject

_SET_TERM: Final = re.compile(r"(?P<key>[^\s!=()]+)\s+(?P<op>in|notin)\s+\((?P<values>[^)]*)\)")
_EQUALITY_TERM: Final = re.compile(r"(?P<key>[^\s!=()]+)\s*(?P<op>==|=|!=)\s*(?P<value>[^\s=()]*)")
_PRESENCE_TERM: Final = re.compile(r"(?P<absent>!?)\s*(?P<key>[^\s!=()]+)")
_BETWEEN_TERMS: Final = re.compile(r",(?![^(]*\))")


class BadTokenError(Exception):
    """The continue token is not from here: the caller has to list from the beginning."""


class SelectorError(Exception):
    """The selector cannot be read."""


def page_of(
    items: Sequence[KubeObject], query: Mapping[str, str], resource_version: str
) -> tuple[list[KubeObject], dict[str, Any]]:
    """Return one page of `items` (which are in order) and the list's metadata.

    `query` is the request's: labelSelector, fieldSelector, limit, continue. Raises BadTokenError, SelectorError.
    """
    found = [item for item in items if _is_selected(item, query)]
    if token := query.get("continue"):
        after = _read_token(token)
        found = [item for item in found if key_of(item) > after]
    limit = int(query.get("limit") or 0)
    metadata: dict[str, Any] = {"resourceVersion": resource_version}
    if 0 < limit < len(found):
        metadata |= {"continue": _token(key_of(found[limit - 1])), "remainingItemCount": len(found) - limit}
        found = found[:limit]
    return found, metadata


def _is_selected(item: KubeObject, query: Mapping[str, str]) -> bool:
    labels = item["metadata"].get("labels", {})
    chosen_by_labels = all(_label_term_holds(term, labels) for term in _terms(query.get("labelSelector", "")))
    return chosen_by_labels and all(_field_term_holds(term, item) for term in _terms(query.get("fieldSelector", "")))


def _terms(selector: str) -> list[str]:
    return [term.strip() for term in _BETWEEN_TERMS.split(selector) if term.strip()]


def _label_term_holds(term: str, labels: Mapping[str, str]) -> bool:
    if match := _SET_TERM.fullmatch(term):
        values = {value.strip() for value in match["values"].split(",")}
        return (labels.get(match["key"]) in values) == (match["op"] == "in")
    if match := _EQUALITY_TERM.fullmatch(term):
        return (labels.get(match["key"]) == match["value"]) == (match["op"] != "!=")
    if match := _PRESENCE_TERM.fullmatch(term):
        return (match["key"] in labels) != bool(match["absent"])
    raise SelectorError(f"cannot read the label selector {term!r}")


def _field_term_holds(term: str, item: KubeObject) -> bool:
    match = _EQUALITY_TERM.fullmatch(term)
    if match is None:
        raise SelectorError(f"cannot read the field selector {term!r}")
    value: Any = item
    for part in match["key"].split("."):
        value = value.get(part, "") if isinstance(value, dict) else ""
    return (str(value) == match["value"]) == (match["op"] != "!=")


def _token(key: Key) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode().rstrip("=")


def _read_token(token: str) -> Key:
    try:
        namespace, name = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    except (binascii.Error, ValueError) as error:
        raise BadTokenError("the continue token is too old or not ours; list from the beginning") from error
    return namespace, name
