"""What is told of a playing of sequences: differences with the file that plays them again, and the closing line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

from tests.cluster.binaries import CACHE
from tests.cluster.differential.coverage import count, missed
from tests.cluster.differential.sequence import Sequence, read, written
from tests.cluster.differential.shrink import shrink

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cluster.differential.company import Company
    from tests.cluster.differential.outcome import Played

FOLDER: Final = CACHE / "differences"
CLOSING_LINES: Final = "differential"
"""The property of a test's report that holds a ledger's lines, to be told under the closing table."""
REPLAYS: Final = 3
"""So often a sequence that differs among others is played again, alone; it may differ in none of them."""
MOST_REPLAYED: Final = 0.04
"""Of all sequences of a kind; more are never laid to time."""
SHRUNK: Final = 3
"""So many differing sequences are cut down; the others are told as they are."""


class Alone(Protocol):
    """Plays a sequence with nothing else beside it."""

    def play_alone(self, sequence: Sequence, times: int) -> list[Played]:
        """Play it so often, or until it differs; return what came of each."""


@dataclass(slots=True)
class Ledger:
    """Everything that was played."""

    played: list[Played] = field(default_factory=list)
    replayed: list[Played] = field(default_factory=list)
    """What differed among others, and never when it was played again alone."""

    def take(self, played: list[Played], company: Alone) -> list[Played]:
        """Take what was played; return it with the replay in the place of what differs because of time only.

        How Kueue decides in a race hangs on what else the machine does; what is wrong in the model is wrong without
        other sequences too. So a sequence that differs is played again, whole and alone, and each time every state
        after every step has to be the same. When too many differ, none is played again.
        """
        differing = [one for one in played if one.differences]
        if len(differing) <= max(1, MOST_REPLAYED * len(played)):
            for one in differing:
                again = company.play_alone(one.sequence, REPLAYS)
                if not again[-1].differences:
                    self.replayed.append(one)
                    keep(one)
                    played = [again[-1] if known is one else known for known in played]
        self.played += played
        return played

    @property
    def lines(self) -> list[str]:
        """The closing lines: how many sequences, how many differences, and what was reached by how many."""
        differences = sum(bool(one.differences) for one in self.played)
        compared = sum(one.compared for one in self.played)
        steps = sum(len(one.steps) for one in self.played)
        hurried = sum(one.hurried for one in self.played)
        looks = sum(one.words_of_an_earlier_look for one in self.played)
        rounds = sum(one.going_round for one in self.played)
        late = sum(one.late_ends for one in self.played)
        returns = sum(one.late_returns for one in self.played)
        doors = sum(one.started_doors for one in self.played)
        equals = sum(one.equals for one in self.played)
        counted = count(self.played)
        return [
            f"differential: {len(self.played)} sequences, {differences} differences",
            f"  {steps} steps, {compared} states of workloads compared",
            f"  {len(self.replayed)} differed among others and in none of {REPLAYS} replays alone",
            *(f"    {difference}" for one in self.replayed for difference in one.differences),
            (
                f"  races, in steps: words of an earlier attempt {looks}, searches that go round {rounds}, "
                f"equals in another order {equals}, slices that end late {late}, late returns {returns}, "
                f"started doors {doors}, hurried {hurried}"
            ),
            *(f"  {counted[name]:4} {name}" for name in sorted(counted)),
        ]

    @property
    def missed(self) -> list[str]:
        """What too few sequences reached; nothing when only one kind was played, which cannot reach everything."""
        if len({one.sequence.fair_sharing for one in self.played}) < 2:
            return []
        return missed(count(self.played), len(self.played))


def explain(played: list[Played], company: Company) -> str:
    """Tell the differences, and where a file lies with what is needed to see each again; empty when there are none."""
    differing = [one for one in played if one.differences]
    told = []
    for place, one in enumerate(differing):
        told += [str(difference) for difference in one.differences]
        least = one.sequence
        if place < SHRUNK:
            least = shrink(one.sequence, one.differences[0].step, company.differ)
        told.append(f"  {len(least.steps)} steps show it; again with TASKGOV_TEST_REPLAY={keep(one, least)}")
    return "\n".join(told)


def keep(played: Played, least: Sequence | None = None) -> Path:
    """Write a sequence, or the least that differs of it, to a file of its own; beside it Kueue's log of the step."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    sequence = least or played.sequence
    kind = "fair" if sequence.fair_sharing else "classical"
    path = FOLDER / f"{kind}-{sequence.seed}.json"
    path.write_text(json.dumps(written(sequence), indent=1))
    told = [str(difference) for difference in played.differences]
    path.with_suffix(".log").write_text("\n".join([*told, *played.log]))
    return path


def kept(path: Path) -> Sequence:
    """Read a sequence from a file."""
    return read(path.read_text())
