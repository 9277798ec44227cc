"""Play the cells: record a clean run, then one fault after another, each from the same prepared state.

A case is one cell, or several whose faults strike in the same run.
"""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.faults import cheaper, forks, invariants, scenario
from tests.faults.evidence import Witness
from tests.faults.injector import Injector
from tests.faults.sites import REFUSALS, Call, Cell, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from taskgov_embedded.walkthrough.world import World

MOST_RESYNCS = 2
"""A lock that nobody could release outlives the first one."""
MOST_WATCHES = 3
"""Two writes that settle slowly make two runs long; a run that lasts longer than this is looked at as it is."""


@dataclass(frozen=True, slots=True)
class Clean:
    """What a run without a fault does: the yardstick for all others."""

    calls: tuple[Call, ...]
    wanted: Mapping[str, Any]
    preemptions: float
    problems: tuple[str, ...]


Case = tuple[Cell, ...]


def name_of(case: Case) -> str:
    """Return a case's name: its cells as they are printed."""
    return " + ".join(map(str, case))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a case. `struck`: how often its faults struck; `resyncs`: how many it took to converge."""

    case: Case
    struck: int
    resyncs: int
    problems: tuple[str, ...]
    later: bool = False
    """Whether a refused write had to be asked for again a day later."""
    twice: bool = False
    """Whether a run was counted twice where nobody can know that it was."""

    @property
    def cell(self) -> Cell:
        """The only cell, or the first of several."""
        return self.case[0]

    def __str__(self) -> str:
        return name_of(self.case)

    @property
    def mark(self) -> str:
        """What the table shows."""
        if self.problems or not self.struck:
            return "FAIL"
        if self.twice:
            return "twice"
        resynced = f"r{self.resyncs}" if self.resyncs else ""
        return f"day {resynced}".strip() if self.later else resynced or "ok"


def record(world: World) -> Clean:
    """Play the scenario once without a fault, in a process of its own."""
    return forks.in_child(partial(_record, world))


def play(world: World, clean: Clean, cases: Iterable[Case], jobs: int = 1) -> Iterator[Outcome]:
    """Play cases, `jobs` at a time; give what came of them in their order."""
    return forks.in_children((partial(_played, world, clean, case) for case in cases), jobs)


def _played(world: World, clean: Clean, case: Case) -> Outcome:
    """Play a case; one that raises has failed, and the others go on."""
    try:
        return _play(world, clean, case)
    except Exception:  # noqa: BLE001 whatever it is, it is the outcome of this case
        return Outcome(case, 0, 0, (f"it raised: {traceback.format_exc()}",))


def _record(world: World) -> Clean:
    cheaper.install(world)
    witness = Witness(world)
    with Injector(world.stack) as injector:
        scenario.disturb(world)
        world.stack.run_until_quiet(scenario.WATCHED_SECONDS)
    evidence = witness.evidence()
    counted = evidence.counted.get("Preemptions", 0)
    problems = [*invariants.at_the_end(evidence), *invariants.counts(evidence, counted)]
    return Clean(tuple(injector.seen), evidence.state(), counted, tuple(problems))


def _play(world: World, clean: Clean, case: Case) -> Outcome:
    cheaper.install(world)
    witness = Witness(world)
    with Injector(world.stack, case, partial(scenario.edit_by_hand, world)) as injector:
        scenario.disturb(world)
        _watch(world, witness)
        problems = [] if _has_edit(case) else invariants.while_it_lasts(witness.evidence(), clean.wanted)
    world.stack.sagemaker.governance.forget_faults()
    world.stack.run_until_quiet(scenario.QUIET_SECONDS)
    resyncs, later, still = _converge(world, clean, case, witness)
    evidence = witness.evidence()
    problems += still + invariants.at_the_end(evidence)
    elsewhere = injector.counted_elsewhere
    miscounted = invariants.counts(evidence, clean.preemptions, elsewhere=elsewhere)
    twice = bool(miscounted) and bool(injector.counted_again)
    if twice:
        again = injector.counted_again
        miscounted = invariants.counts(evidence, clean.preemptions, again=again, elsewhere=elsewhere)
    return Outcome(case, injector.struck.total(), resyncs, (*problems, *miscounted), later, twice)


def _watch(world: World, witness: Witness) -> None:
    """Let the fault do its work, and the run end that it slowed down: what a run writes is on record when it ends."""
    for _ in range(MOST_WATCHES):
        world.stack.run_until_quiet(scenario.WATCHED_SECONDS)
        if not witness.evidence().running:
            return


def _has_edit(case: Case) -> bool:
    return any(cell.kind is Kind.EDIT for cell in case)


def _converge(world: World, clean: Clean, case: Case, witness: Witness) -> tuple[int, bool, list[str]]:
    """Let resyncs come; what was refused is asked for again a day later, and until then nothing more is written."""
    resyncs, wrong = _resync(world, clean, case, witness)
    refusals = [cell for cell in case if cell.kind in REFUSALS]
    if not wrong and len(refusals) == len(case):
        return resyncs, False, ["the refused write was made before a day had passed"]
    if not wrong or not refusals:
        return resyncs, False, wrong
    stands = witness.evidence()
    scenario.resync(world)
    problems = invariants.refusal_stands(stands, witness.evidence())
    scenario.let_a_day_pass(world)
    resyncs, wrong = _resync(world, clean, case, witness)
    return resyncs, True, problems + wrong


def _resync(world: World, clean: Clean, case: Case, witness: Witness) -> tuple[int, list[str]]:
    """Let resyncs come until all is as it is to be; always one, which must not disturb what is right."""
    needed = 1 if _wrong(clean, case, witness) else 0
    scenario.resync(world)
    while wrong := _wrong(clean, case, witness):
        if needed == MOST_RESYNCS:
            return needed, wrong
        needed += 1
        scenario.resync(world)
    return needed, []


def _wrong(clean: Clean, case: Case, witness: Witness) -> list[str]:
    evidence = witness.evidence()
    if _has_edit(case):
        return invariants.edit_kept(evidence) + invariants.leftovers(evidence)
    return invariants.converged(evidence, clean.wanted) + invariants.leftovers(evidence)
