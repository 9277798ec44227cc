"""A plan as bytes and back, and the digest of its changes alone.

Services store plans and read them back change by change; a person approves the digest of the changes, so that an
approval holds exactly as long as the changes stay the same, whatever else the world does.
"""

import hashlib
import json
from functools import cache
from typing import Any

from pydantic import TypeAdapter

from taskgov.allocation.plan import Change, Plan


def plan_to_json(plan: Plan) -> bytes:
    """Return the canonical bytes of a plan: the same plan gives the same bytes."""
    return _canonical(_plans().dump_python(plan, mode="json", by_alias=True))


def plan_from_json(text: bytes) -> Plan:
    """Return the plan that `plan_to_json` wrote. Raises `ValueError` (pydantic) for anything else."""
    return _plans().validate_json(text)


def changes_sha256(plan: Plan) -> str:
    """Return the digest of what the plan would write: kinds, resources, versions, values; no sentence, no verdict."""
    data = _changes().dump_python(plan.changes, mode="json", by_alias=True, exclude=_NOT_WRITTEN)
    return hashlib.sha256(_canonical(data)).hexdigest()


_NOT_WRITTEN: Any = {"__all__": {"because", "reason", "guardrails", "preempts", "leased", "demand"}}


def _canonical(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@cache
def _plans() -> TypeAdapter[Plan]:
    return TypeAdapter(Plan)


@cache
def _changes() -> TypeAdapter[tuple[Change, ...]]:
    return TypeAdapter(tuple[Change, ...])
