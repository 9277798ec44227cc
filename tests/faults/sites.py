"""Say where a fault can strike, and which faults make sense there.

A site is the n-th call of an operation by a caller: found in a clean run, never listed by hand.
"""

from __future__ import annotations

import hashlib
import heapq
import itertools
import operator
import random
import re
from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from moto.core.utils import get_service_model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

KUBERNETES: Final = "kubernetes"
DELIVERY: Final = ("events", "Deliver")
MACHINE: Final = "ReconcileRole"
"""The caller of what the state machine calls by itself."""
STATES: Final = "states"
"""The service of a call that stands for a state that an execution enters; the operation is the state's name."""
_READS = re.compile(r"(Get|List|Describe|Head|Query|Scan|BatchGet|GET)")
_CONFLICT = re.compile(r"Conflict|ConditionalCheckFailed|AlreadyExists|ResourceInUse")


class Kind(StrEnum):
    """A column of the table."""

    THROTTLE_ONCE = "throttle once"
    THROTTLE_EVER = "throttle ever"
    SERVER_ERROR = "500"
    TIMEOUT_BEFORE = "timeout before"
    TIMEOUT_AFTER = "timeout after"
    CONFLICT = "conflict"
    CRASH_BEFORE = "crash before"
    CRASH_AFTER = "crash after"
    DUPLICATE = "duplicate"
    LATE = "late"
    LOST = "lost"
    SETTLES_FAILED = "settles failed"
    LIMIT_REACHED = "limit reached"
    INVALID = "invalid"
    NOT_FOUND = "not found"
    DENIED = "denied"
    SETTLES_SLOWLY = "5 min"
    SETTLES_VERY_SLOWLY = "20 min"
    LATE_LISTS = "lists 30 s"
    VERY_LATE_LISTS = "lists 5 min"
    EDIT = "edit"
    NEVER_ANSWERS = "never answers"
    STOPPED = "stopped"
    TIMED_OUT = "timed out"


REFUSALS: Final = frozenset({Kind.LIMIT_REACHED, Kind.INVALID, Kind.NOT_FOUND, Kind.DENIED})
"""After these a write is not tried again before a day has passed."""
OF_STATES: Final = (Kind.STOPPED, Kind.TIMED_OUT)
OF_LISTS: Final = (Kind.LATE_LISTS, Kind.VERY_LATE_LISTS)
_LATE_LISTS: Final = frozenset({"ListComputeQuotas", "ListClusterSchedulerConfigs"})


@dataclass(frozen=True, slots=True, order=True)
class Call:
    """One call as the matrix sees it: a caller (role, or EventBridge), a service, an operation."""

    caller: str
    service: str
    operation: str
    conditional: bool = False
    """A write of DynamoDB that has a condition, and so can be refused."""

    @property
    def reads(self) -> bool:
        """Whether it changes nothing: then before and after are the same, and twice is once."""
        return bool(_READS.match(self.operation))

    @property
    def is_of_function(self) -> bool:
        """Whether a function makes it, which can crash."""
        return self.caller not in {MACHINE, "EventBridge"}

    def __str__(self) -> str:
        return f"{self.caller} {self.service}:{self.operation}"


@dataclass(frozen=True, slots=True, order=True)
class Site:
    """The n-th call of its kind in a run, counted from 1."""

    call: Call
    number: int

    def __str__(self) -> str:
        return f"{self.call} #{self.number}"


@dataclass(frozen=True, slots=True)
class Cell:
    """One fault at one site."""

    site: Site
    kind: Kind

    def __str__(self) -> str:
        return f"{self.site} / {self.kind}"


def sample(where: Iterable[Site], count: int, seed: int) -> list[Cell]:
    """Return `count` cells, drawn with a seed: every call and every kind of fault is among them.

    Raises ValueError where `count` is too small for that.
    """
    every = list(cells(where))
    random.Random(seed).shuffle(every)  # noqa: S311 a sample that can be drawn again
    first_of: dict[Call | Kind, Cell] = {}
    for cell in every:
        first_of.setdefault(cell.site.call, cell)
        first_of.setdefault(cell.kind, cell)
    chosen = list(dict.fromkeys([*first_of.values(), *every]))[:count]
    if not set(first_of.values()) <= set(chosen):
        raise ValueError(f"{count} cells are too few: {len(set(first_of.values()))} are needed")
    return chosen


def pairs(where: Iterable[Site], count: int, seed: int) -> list[tuple[Cell, Cell]]:
    """Return `count` different pairs of cells at different sites, drawn with a seed: a sample of all that can happen.

    Both faults are of one run. Drawn is by the digests of the names, so that a call more or less changes the pairs that
    have it, and hardly any other. Raises ValueError where there are not so many pairs.
    """
    every = [(cell, _digest(f"{seed} {cell}".encode())) for cell in cells(where)]
    possible = (
        (_digest(digest + its_digest), first, other)
        for (first, digest), (other, its_digest) in itertools.combinations(every, 2)
        if first.site != other.site
    )
    drawn = heapq.nsmallest(count, possible, key=operator.itemgetter(0))
    if len(drawn) < count:
        raise ValueError(f"there are {len(drawn)} pairs, not {count}")
    return [(first, other) for _, first, other in drawn]


def _digest(text: bytes) -> bytes:
    return hashlib.blake2b(text, digest_size=8).digest()


def sites(calls: Iterable[Call], *, of_reads: int = 2) -> list[Site]:
    """Return the sites of a recorded run: of a write every occurrence, of a read `of_reads` (the first, the last)."""
    counted = Counter(calls)
    return [Site(call, number) for call, total in sorted(counted.items()) for number in _numbers(call, total, of_reads)]


def _numbers(call: Call, total: int, of_reads: int) -> list[int]:
    if not call.reads:
        return list(range(1, total + 1))
    return sorted({1, total}) if of_reads > 1 else [1]


def cells(where: Iterable[Site]) -> Iterator[Cell]:
    """Return every cell that says something."""
    return (Cell(site, kind) for site in where for kind in kinds(site.call))


def kinds(call: Call) -> list[Kind]:
    """Return the faults that can befall a call, and that differ from one another there."""
    if (call.service, call.operation) == DELIVERY:
        return [Kind.DUPLICATE, Kind.LATE, Kind.LOST]
    if call.service == STATES:
        return list(OF_STATES)
    found = [Kind.THROTTLE_ONCE, Kind.THROTTLE_EVER, Kind.SERVER_ERROR, Kind.TIMEOUT_BEFORE, Kind.LATE]
    if call.is_of_function:
        found.append(Kind.CRASH_BEFORE)
    if call.service == "sagemaker" and call.operation in _LATE_LISTS:
        found += OF_LISTS
    if call.service == KUBERNETES or call.reads:
        return found
    found += [Kind.TIMEOUT_AFTER, Kind.DUPLICATE]
    if call.is_of_function:
        found.append(Kind.CRASH_AFTER)
    if conflict_code(call):
        found.append(Kind.CONFLICT)
    if call.service == "sagemaker":
        found += [*sorted(REFUSALS), Kind.SETTLES_FAILED, Kind.SETTLES_SLOWLY, Kind.SETTLES_VERY_SLOWLY]
    if (call.caller, call.service) == (MACHINE, "lambda"):
        found.append(Kind.NEVER_ANSWERS)
    if call.service == "sagemaker" or (call.caller, call.service) == (MACHINE, "lambda"):
        found.append(Kind.EDIT)
    return found


def conflict_code(call: Call) -> str | None:
    """Return the error with which a service refuses this call when the world has moved, or None."""
    if call.service == KUBERNETES:
        return None
    shapes = get_service_model(call.service).operation_model(call.operation).error_shapes
    codes = [shape.metadata.get("error", {}).get("code", shape.name) for shape in shapes]
    found = [code for code in codes if _CONFLICT.search(code)]
    if call.service == "dynamodb":
        found = [code for code in found if call.conditional and "ConditionalCheck" in code]
    return found[0] if found else None
