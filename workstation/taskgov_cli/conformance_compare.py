"""Find where an answer first differs from a recorded expectation.

Defines which fields are amounts, lists in no order, or not compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from taskgov.quantities import parse

_NOT_COMPARED = {"note", "unit"}
_KEYED_BY = {"preempted": "workload", "pendingConditions": "workload"}


def first_difference(kind: str, expected: Mapping[str, Any], found: Mapping[str, Any]) -> str | None:
    """Return a sentence about the first field that differs, `None` when all that is expected was found."""
    for name, want in expected.items():
        if name in _NOT_COMPARED or (name == "cycles" and isinstance(want, int)):
            continue
        difference = _compare(name, want, found.get(name), name)
        if difference is not None:
            return f"{kind}: {difference}"
    return None


def _compare(field: str, want: Any, got: Any, path: str) -> str | None:
    if field in _COMPARERS:
        return _COMPARERS[field](want, got, path)
    if field == "attempts":
        want = _comparable_attempts(want, got)
    if isinstance(want, Mapping):
        return _compare_mappings(field, want, got, path)
    if isinstance(want, list) and want and isinstance(want[0], Mapping):
        return _compare_lists(field, want, got, path)
    return _mismatch(want, got, path)


def _compare_mappings(field: str, want: Mapping[str, Any], got: Any, path: str) -> str | None:
    if not isinstance(got, Mapping):
        return _mismatch(want, got, path)
    named = (
        path.endswith(("assignments", "newlyAdmitted", "left", "inadmissibleLeft", "flavors"))
        or field == "assignmentsAfterSecondCycle"
    )
    if named and set(want) != set(got):
        return _mismatch(sorted(want), sorted(got), f"{path} (names)")
    for key, value in want.items():
        if isinstance(value, list) and field in {"left", "inadmissibleLeft"}:
            difference = _mismatch(sorted(value), sorted(got.get(key) or []), f"{path}.{key}")
        else:
            difference = _compare(key, value, got.get(key), f"{path}.{key}")
        if difference is not None:
            return difference
    return None


def _compare_lists(field: str, want: Sequence[Any], got: Any, path: str) -> str | None:
    if field in _KEYED_BY:
        key = _KEYED_BY[field]
        want, got = sorted(want, key=lambda x: str(x[key])), sorted(got, key=lambda x: str(x[key]))
        if [w[key] for w in want] != [g[key] for g in got]:
            return _mismatch([w[key] for w in want], [g[key] for g in got], path)
    if not isinstance(got, list) or len(want) != len(got):
        return _mismatch(want, got, path)
    for index, (wanted, gotten) in enumerate(zip(want, got, strict=True)):
        difference = _compare(f"{field}[]", wanted, gotten, f"{path}[{index}]")
        if difference is not None:
            return difference
    return None


def _comparable_attempts(want: Sequence[Mapping[str, Any]], got: Sequence[Mapping[str, Any]]) -> Sequence[Any]:
    """Keep the attempts that Kueue's own test compares (`assertPodSetConsideredFlexible`).

    Once a flavor fits, Kueue also lists flavors that it did not consider, and as unfit those that lack a resource of
    another group.
    """
    if not want:
        return got
    if all(attempt["mode"] != "Fit" for attempt in want):
        return want
    visited = {attempt["flavor"]: attempt for attempt in got}
    return [
        visited[flavor] if visited[flavor]["mode"] == "Fit" and _lacks_a_resource_only(attempt) else attempt
        for attempt in want
        if (flavor := attempt["flavor"]) in visited
    ]


def _lacks_a_resource_only(attempt: Mapping[str, Any]) -> bool:
    start = f"flavor {attempt['flavor']} does not provide resource "
    return attempt["mode"] == "NoFit" and all(reason.startswith(start) for reason in attempt["reasons"])


def _compare_quantities(want: Mapping[str, Any], got: Any, path: str) -> str | None:
    return _mismatch(
        {r: parse(r, q) for r, q in want.items()},
        {r: parse(r, q) for r, q in (got or {}).items()},
        path,
    )


def _compare_amounts(want: Mapping[str, Any], got: Any, path: str) -> str | None:
    for queue, amounts in want.items():
        for fr, amount in amounts.items():
            if got[queue].get(fr, 0) != amount:
                return _mismatch(amount, got[queue].get(fr, 0), f"{path}.{queue}.{fr}")
    return None


def _compare_events(want: Sequence[Mapping[str, Any]], got: Any, path: str) -> str | None:
    """Compare events in no order; an empty message is one that was not recorded."""
    left = list(got)
    for event in want:
        match = next((e for e in left if all(e[k] == v for k, v in event.items() if k != "message" or v)), None)
        if match is None:
            return f"{path}: expected {event}, found only {left}"
        left.remove(match)
    return f"{path}: unexpected {left}" if left else None


def _nonzero(usage: Any) -> dict[str, int]:
    return {fr: amount for fr, amount in (usage or {}).items() if amount}


def _mismatch(want: Any, got: Any, path: str) -> str | None:
    return None if want == got else f"{path}: expected {want!r}, found {got!r}"


_COMPARERS: Mapping[str, Callable[[Any, Any, str], str | None]] = {
    "resourceUsage": _compare_quantities,
    "requests": _compare_quantities,
    "events": _compare_events,
    "usage": lambda want, got, path: _mismatch(_nonzero(want), _nonzero(got), path),
    "available": _compare_amounts,
    "potentiallyAvailable": _compare_amounts,
    "reasons": lambda want, got, path: _mismatch(sorted(want), sorted(got), path),
}
