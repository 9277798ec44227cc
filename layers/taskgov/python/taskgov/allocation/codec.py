"""A plan as bytes and back, the digest of its changes, and the plan id that follows from the digest.

Services store plans and read them back change by change. A person approves the digest of the changes, so an approval
is valid exactly as long as the changes stay the same. The same is true for the id: a plan that is made again, in
another mode or from a newer snapshot, keeps its id as long as its changes are the same.
"""

import hashlib
import json
from functools import cache
from typing import Any, Final

from pydantic import TypeAdapter

from taskgov.allocation.plan import Change, Plan
from taskgov.json_form import KeptForm


def plan_to_json(plan: Plan) -> bytes:
    """Return the canonical bytes of a plan: the same plan gives the same bytes."""
    return _canonical(_plans().data(plan))


def plan_to_store(plan: Plan) -> bytes:
    """Return the bytes of a plan as a run stores them: canonical too, and in the form of `KeptForm`."""
    return _canonical(_plans().kept_data(plan))


def plan_from_json(text: bytes) -> Plan:
    """Return the plan that is in a file or was stored, in either form. Raises `ValueError` (pydantic)."""
    return _plans().read(text)


def changes_sha256(plan: Plan) -> str:
    """Return the digest of what the plan makes of each quota: kinds, resources, versions, values; no sentence.

    The path there is left out (waves, low writes, order): it depends on the jobs that run, and changes with them. What
    was lost is part of it where the plan depends on that: who approves it approves the loss of these nodes, no others.

    A person may have approved it before an upgrade, so what is digested keeps the form of the first release: members as
    the fields of `Change` were called then, whatever `plan_to_json` calls them.
    """
    paths: dict[str, list[Change]] = {}
    for change in plan.changes:
        paths.setdefault(change.subject, []).append(change)
    ends = [(key, path[0], path[-1]) for key, path in sorted(paths.items())]
    data: list[Any] = [(key, _written(first, _AFTER), _written(last, _BEFORE)) for key, first, last in ends]
    data += [(loss.instance_type, loss.nodes) for loss in plan.losses]
    return hashlib.sha256(_canonical(data)).hexdigest()


def plan_id_of(plan: Plan) -> str:
    """Return what a plan is called: by its cluster and its changes; one that changes nothing, by its snapshot."""
    what = f"{plan.cluster_arn} {changes_sha256(plan)}" if plan.changes else plan.snapshot_sha256
    return f"plan-{hashlib.sha256(what.encode()).hexdigest()[:16]}"


_SAID: Final = {"because", "reason", "guardrails", "preempts"}
_KEPT: Final = {"leased", "demand", "began_from", "sharing_within_budget", "wanted"}
_PATH: Final = {"index", "wave", "is_low"}
_AFTER: Final = {"after", "target_after", "gpus_after"}
_BEFORE: Final = {"before", "target_before", "gpus_before", "target_version"}


def _written(change: Change, left_out: set[str]) -> Any:
    return _change().dump_python(change, mode="json", by_alias=True, exclude=_SAID | _KEPT | _PATH | left_out)


def _canonical(data: object) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


@cache
def _plans() -> KeptForm[Plan]:
    return KeptForm(Plan)


@cache
def _change() -> TypeAdapter[Change]:
    return TypeAdapter(Change)
