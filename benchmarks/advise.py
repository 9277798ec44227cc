"""How good is advice? A trace on several sizes of cluster: what would have been chosen, and what came of it.

`make bench-advise TRACE=philly.csv GPUS=600,450,300` prints the table of docs/evidence.md: in each column what was
measured, and in brackets the aim. Beside the advice stands the best single candidate in hindsight, the one with the
least wait over all splits. The last split is replayed again by the exact model.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from benchmarks.plots import picture
from taskgov.advice.advising import Adviser
from taskgov.advice.candidates import LIMITS, Candidate
from taskgov.advice.choosing import MOST_LOST
from taskgov.advice.past import WEEK
from taskgov.advice.playing import Player
from taskgov.advice.proving import Proof, gain_of
from taskgov.advice.rules import Rule
from taskgov.advice.splits import Split
from taskgov.advice.words import limit_words
from taskgov.bootstrap import ALLOCATIONS
from taskgov_cli.advise_exact import replay_exactly
from taskgov_cli.advise_reading import basis_of_use, past_of
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from taskgov.advice.judging import Result
    from taskgov.advice.past import Past

WORSE: Final = 1 / 12
"""The aim: the part of teams, over all splits, that may be worse off than with their own quota alone."""
CHANCE: Final = 0.15
"""Where work asks for about all there is, queues only grow, and differences below this are chance."""
FULL: Final = 0.9
"""So much of what there is, on average over all splits, is about all."""
GAIN: Final = {600: 85, 450: 65, 300: 40}
"""The aim: by how many percent the mean wait is shorter, by GPUs."""
COLUMNS: Final = (
    "GPUs",
    "mean wait today",
    "advised",
    "shorter by",
    "splits won",
    "work lost today",
    "work lost",
    "worse than alone",
    "CPU",
    "best in hindsight",
    "best in hindsight that keeps the limits",
    "noise",
    "exact model, last split",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a row for each size, and what was chosen in each split."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trace", type=Path)
    options.add_argument("--gpus", default="600,450,300")
    options.add_argument("--splits", type=int, default=10)
    options.add_argument(
        "--batch", type=int, default=300, help="seconds for which freed quota is gathered before jobs are reconsidered"
    )
    options.add_argument("--looks-back", type=int, default=26, help="weeks that a choice uses")
    options.add_argument(
        "--limits", type=int, metavar="WEEK", help="compare borrow limits in the two weeks from this one"
    )
    options.add_argument("--plot", type=picture, metavar="FILE", help="draw it (SVG, PNG or PDF; needs matplotlib)")
    options.add_argument("--no-exact", action="store_true", help="leave the exact model out")
    given = options.parse_args(arguments)
    past = past_of(read_trace(given.trace))
    if given.limits is not None:
        for gpus in map(int, given.gpus.split(",")):
            _limits(past, gpus, given)
        return
    gc.set_threshold(ALLOCATIONS)  # as commands have it
    gc.freeze()  # the collector need not traverse the work again and again
    measured = [_proved(past, int(gpus), given) for gpus in given.gpus.split(",")]
    print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join('---' for _ in COLUMNS)} |")
    for size in measured:
        print(_row(size, given), flush=True)
    if given.plot is not None:
        _drawn(measured, given)
    for size in measured:
        print(f"\n{size.gpus} GPUs")
        for line in _chosen(size.proofs):
            print(line)


@dataclass(frozen=True)
class Measured:
    """What advice came to on one size of cluster, and the processor time in seconds to choose and to prove."""

    gpus: int
    adviser: Adviser
    proofs: Sequence[Proof]
    took: float


def _proved(past: Past, gpus: int, given: argparse.Namespace) -> Measured:
    """Choose and prove at each moment; say on standard error what came of it, as the rest takes a while."""
    begun = time.process_time()
    adviser = Adviser(past, partial(basis_of_use, past.teams, gpus), Player(given.batch), looks_back=given.looks_back)
    proofs = adviser.prove(most=given.splits)
    size = Measured(gpus, adviser, proofs, time.process_time() - begun)
    print(f"| {' | '.join(_cells(size))} |", *_chosen(proofs), sep="\n", file=sys.stderr, flush=True)
    return size


def _cells(size: Measured) -> tuple[str, ...]:
    """Return the cells that the proofs alone give."""
    proofs = size.proofs
    worse, teams = sum(len(p.advised.worse_than(p.alone)) for p in proofs), sum(len(p.advised.teams) for p in proofs)
    return (
        f"{size.gpus}",
        f"{_hours(p.today.mean_wait for p in proofs)} h",
        f"{_hours(p.advised.mean_wait for p in proofs)} h",
        f"{100 * gain_of(proofs):.0f} %" + (f" ({GAIN[size.gpus]} %)" if size.gpus in GAIN else ""),
        f"{sum(p.won for p in proofs)} of {len(proofs)} (9 of 10)",
        f"{_lost([p.today for p in proofs])} %",
        f"{_lost([p.advised for p in proofs])} % (5 %)",
        f"{worse} of {teams} (1 of 12)",
        f"{size.took:.0f} s (60 s)",
    )


def _row(size: Measured, given: argparse.Namespace) -> str:
    """Return the whole row of a size."""
    known = _hindsight(size.adviser, size.proofs)
    cells = (
        *_cells(size),
        _beside(size, known),
        _beside(size, {candidate: found for candidate, found in known.items() if _keeps_limits(size, found)}),
        _noise(size.adviser.noise(size.proofs), size.proofs, size.gpus),
        "left out" if given.no_exact else _exactly(size.adviser, size.proofs[-1], given.batch),
    )
    return f"| {' | '.join(cells)} |"


def _chosen(proofs: Sequence[Proof]) -> Iterator[str]:
    """Give what was chosen at each moment, and what came of it."""
    for proof in proofs:
        yield (
            f"  week {proof.split.middle / WEEK:.0f}: {_named(proof.candidate)}: {proof.today.mean_wait / 3600:.2f} h"
            f" -> {proof.advised.mean_wait / 3600:.2f} h, lost {100 * proof.advised.lost:.1f} %"
        )


def _drawn(measured: Iterable[Measured], given: argparse.Namespace) -> None:
    """Draw what was measured."""
    from benchmarks.advise_plot import Waits, plot  # noqa: PLC0415 - matplotlib is there only where plots are drawn

    sizes = [
        Waits(
            size.gpus,
            [round(proof.split.middle / WEEK) for proof in size.proofs],
            [proof.today.mean_wait / 3600 for proof in size.proofs],
            [proof.advised.mean_wait / 3600 for proof in size.proofs],
        )
        for size in measured
    ]
    plot(f"Advice on {given.trace.stem}", sizes, given.plot)


def _limits(past: Past, gpus: int, given: argparse.Namespace) -> None:
    """Print what each borrow limit comes to in two weeks, with quotas in proportion to the use of the two before."""
    split = Split((given.limits - 2) * WEEK, given.limits * WEEK, (given.limits + 2) * WEEK)
    adviser = Adviser(past, partial(basis_of_use, past.teams, gpus), Player(given.batch))
    print(f"{gpus} GPUs, weeks {given.limits} to {given.limits + 2}, quotas from the use of the two weeks before")
    print("| borrow limit | mean wait | 95 % wait | preemptions | work lost, GPU-hours | never started |")
    print("| --- | --- | --- | --- | --- | --- |")
    for limit in LIMITS:
        found = adviser.result(Candidate(Rule.TODAY, limit), split)
        cells = (
            limit_words(limit),
            f"{found.mean_wait / 3600:.2f} h",
            f"{found.p95_wait / 3600:.2f} h",
            f"{found.preemptions:,}",
            f"{found.lost_gpu_hours:,.0f}",
            f"{found.never_started}",
        )
        print(f"| {' | '.join(cells)} |")


def _exactly(adviser: Adviser, proof: Proof, batch: int) -> str:
    """Replay a proof by the exact model; say whether it comes to the same, job by job."""
    before, after, work = adviser.inputs_of(proof)
    same = (replay_exactly(before, work, batch), replay_exactly(after, work, batch)) == (proof.today, proof.advised)
    return "the same" if same else "NOT the same"


def _hindsight(adviser: Adviser, proofs: Sequence[Proof]) -> dict[Candidate, list[Result]]:
    """Return what candidates come to in all splits: those chosen in any, and each rule with the higher limits."""
    high = [Candidate(rule, limit) for rule in Rule if rule is not Rule.TODAY for limit in LIMITS[2:]]
    tried = sorted({*high, *(proof.candidate for proof in proofs)}, key=str)
    return {candidate: [adviser.result(candidate, proof.split) for proof in proofs] for candidate in tried}


def _keeps_limits(size: Measured, found: Sequence[Result]) -> bool:
    """Say whether a candidate loses little work, and hardly anybody is worse off than alone, over all splits."""
    worse = sum(len(own.worse_than(proof.alone)) for own, proof in zip(found, size.proofs, strict=True))
    lost, work = sum(own.lost_gpu_hours for own in found), sum(own.work_gpu_hours for own in found)
    return lost <= MOST_LOST * work and worse <= WORSE * sum(len(own.teams) for own in found)


def _beside(size: Measured, known: Mapping[Candidate, Sequence[Result]]) -> str:
    """Return the candidate with the least wait over all splits, and how far advice is above it."""
    if not known:
        return "none"
    best, found = min(known.items(), key=lambda pair: sum(result.mean_wait for result in pair[1]))
    above = fmean(p.advised.mean_wait for p in size.proofs) / fmean(result.mean_wait for result in found) - 1
    lost = f"loses {_lost(found)} %"
    return f"{_hours(result.mean_wait for result in found)} h, {_named(best)}, {lost}: {100 * above:+.0f} % (+10 %)"


def _noise(noise: float, proofs: Sequence[Proof], gpus: int) -> str:
    """Return how far the gain moves by chance; at least 15 % where work asks for about all there is."""
    offered = sum(gpus * (proof.split.last - proof.split.middle) / 3600 for proof in proofs)
    full = sum(proof.today.work_gpu_hours for proof in proofs) > FULL * offered
    return f"{100 * max(noise, CHANCE if full else 0.0):.0f} %"


def _named(candidate: Candidate) -> str:
    fair = "" if candidate.fair else ", FairShare off"
    return f"{candidate.rule} {limit_words(candidate.limit)}{fair}"


def _hours(seconds: Iterable[float]) -> str:
    return f"{fmean(seconds) / 3600:.2f}"


def _lost(results: Sequence[Result]) -> str:
    return f"{100 * sum(r.lost_gpu_hours for r in results) / sum(r.work_gpu_hours for r in results):.1f}"


if __name__ == "__main__":
    main()
