"""How good is advice? A trace on several sizes of cluster: what would have been chosen, and what came of it.

`make bench-advise TRACE=philly.csv GPUS=600,450,300` prints the table of docs/evidence.md. Beside the advice stands the
best single candidate in hindsight, the one with the least wait over all splits.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Final

from taskgov.advice.advising import Adviser
from taskgov.advice.candidates import LIMITS, Candidate, Rule
from taskgov.advice.playing import Player
from taskgov.advice.proving import Proof, gain_of
from taskgov_cli.advise_reading import basis_of_use, past_of
from taskgov_cli.advise_words import limit_words
from taskgov_cli.replay_traces import read_trace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from taskgov.advice.judging import Result
    from taskgov.advice.past import Past

CHANCE: Final = 0.15
"""Where there is far too little, differences below this are chance."""
COLUMNS: Final = (
    "GPUs",
    "today",
    "advised",
    "gain",
    "hindsight",
    "won",
    "lost today",
    "lost",
    "worse than alone",
    "noise",
    "CPU",
)


def main() -> None:
    """Print a row for each size, and what was chosen in each split."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("trace", type=Path)
    options.add_argument("--gpus", default="600,450,300")
    options.add_argument("--splits", type=int, default=10)
    options.add_argument("--batch", type=int, default=300, help="seconds of freed quota that are gathered for a look")
    options.add_argument("--looks-back", type=int, default=4, help="weeks that a choice looks at")
    given = options.parse_args()
    past = past_of(read_trace(given.trace))
    print(f"| {' | '.join(COLUMNS)} |\n| {' | '.join('---' for _ in COLUMNS)} |")
    for gpus in map(int, given.gpus.split(",")):
        for line in measured(past, gpus, given.splits, given.batch, given.looks_back):
            print(line, flush=True)


def measured(past: Past, gpus: int, most: int, batch: int, looks_back: int) -> Iterator[str]:
    """Give the row of a size, then a line for each split."""
    begun = time.process_time()
    adviser = Adviser(past, partial(basis_of_use, past.teams, gpus), Player(batch), looks_back=looks_back)
    proofs = adviser.prove(most=most)
    took = time.process_time() - begun
    noise = adviser.noise(proofs)
    hindsight = _hindsight(adviser, proofs)
    worse, teams = sum(len(p.advised.worse_than(p.alone)) for p in proofs), sum(len(p.advised.teams) for p in proofs)
    cells = (
        f"{gpus}",
        f"{_hours(p.today.mean_wait for p in proofs)} h",
        f"{_hours(p.advised.mean_wait for p in proofs)} h",
        f"-{100 * gain_of(proofs):.0f} %",
        f"{_hours(p.mean_wait for p in hindsight[1])} h ({_named(hindsight[0])})",
        f"{sum(p.won for p in proofs)} of {len(proofs)}",
        f"{_lost([p.today for p in proofs])} %",
        f"{_lost([p.advised for p in proofs])} %",
        f"{worse} of {teams}",
        f"{100 * noise:.0f} %",
        f"{took:.0f} s",
    )
    yield f"| {' | '.join(cells)} |"
    for proof in proofs:
        yield (
            f"  week {proof.split.middle / 604800:.0f}: {_named(proof.candidate)}: {proof.today.mean_wait / 3600:.2f} h"
            f" -> {proof.advised.mean_wait / 3600:.2f} h, lost {100 * proof.advised.lost:.1f} %"
        )


def _hindsight(adviser: Adviser, proofs: Sequence[Proof]) -> tuple[Candidate, list[Result]]:
    """Return the candidate with the least wait over all splits: of those chosen in any, and all with high limits."""
    high = [Candidate(rule, limit) for rule in Rule for limit in LIMITS[-2:]]
    tried = sorted({*high, *(proof.candidate for proof in proofs)}, key=str)
    found = [(candidate, [adviser.result(candidate, proof.split) for proof in proofs]) for candidate in tried]
    return min(found, key=lambda pair: sum(result.mean_wait for result in pair[1]))


def _named(candidate: Candidate) -> str:
    fair = "" if candidate.fair else ", FairShare off"
    return f"{candidate.rule} {limit_words(candidate.limit)}{fair}"


def _hours(seconds: Iterable[float]) -> str:
    return f"{fmean(seconds) / 3600:.2f}"


def _lost(results: Sequence[Result]) -> str:
    return f"{100 * sum(r.lost_gpu_hours for r in results) / sum(r.work_gpu_hours for r in results):.1f}"


if __name__ == "__main__":
    main()
