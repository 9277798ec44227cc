"""Prove one plan: everything that can be said against it, in sentences.

It shares nothing with the product but the scheduling model, the planner that it is about, its value types, the table of
instance types, and the readers.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas, row_sources
from taskgov.snapshot.codec import snapshot_from_json
from taskgov.snapshot.model import Snapshot
from tests.prove.causes import Sources
from tests.prove.facts import facts_of
from tests.prove.goal import Planner, goal_failures
from tests.prove.judging import judging_failures
from tests.prove.monotone import monotone_failures
from tests.prove.path import form_failures, waves_of
from tests.prove.play import play, preemption_failures
from tests.prove.reasons import reason_failures
from tests.prove.writing import way_back_failures, write_path

Explaining = Callable[[Snapshot], Sources]
"""Tells where each number of each quota of the plan comes from."""
ORDERS = 2
"""Shuffled orders in which each path is played, beside forward, backward and at once."""


def plan_to_apply(snapshot: Snapshot) -> Plan:
    """Plan as a run does."""
    return plan_quotas(snapshot, mode="apply")


def prove(
    snapshot: Snapshot, planner: Planner = plan_to_apply, orders: int = ORDERS, explaining: Explaining = row_sources
) -> tuple[str, ...]:
    """Return everything that is wrong with the plan of a snapshot; nothing when it is proven.

    A plan that waits for a person, or that a limit stops, is gone along as if it were applied: its path has to be right
    anyway.
    """
    plan = planner(snapshot)
    return tuple(dict.fromkeys(_failures(snapshot, plan, planner, orders, explaining)))


def prove_file(path: Path, orders: int = ORDERS) -> tuple[str, ...]:
    """Return what is wrong with the plan of a stored snapshot; a file that cannot be read or planned is a failure."""
    try:
        snapshot = snapshot_from_json(path.read_bytes())
    except (OSError, ValueError) as error:
        return (f"cannot be read: {_one_line(error)}",)
    try:
        return prove(snapshot, orders=orders)
    except Exception as error:  # noqa: BLE001 - whatever breaks is the failure of this world, not the end of the proof
        return (f"{type(error).__name__}: {_one_line(error)}",)


def _failures(snapshot: Snapshot, plan: Plan, planner: Planner, orders: int, explaining: Explaining) -> Iterator[str]:
    facts = facts_of(snapshot, plan)
    waves = waves_of(plan)
    yield from form_failures(facts)
    written = write_path(facts, waves)
    yield from written.failures
    complete = len(written.states) == len(waves) and not any("refuses" in text for text in written.failures)
    played = play(facts, waves, orders) if complete and snapshot.kueue.workloads and waves else None
    if played is not None:
        yield from preemption_failures(facts, played)
    yield from judging_failures(facts, played)
    yield from monotone_failures(snapshot, planner)
    if complete:
        yield from reason_failures(facts, written.account, explaining(snapshot))
        yield from way_back_failures(facts, waves, written)
        yield from goal_failures(facts, written, played.kueue if played else None, planner)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
