"""Play many sequences at once on one control plane, each with names of its own, so that they do not touch."""

from __future__ import annotations

import itertools
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from tests.cluster.differential.api import Api, Workloads
from tests.cluster.differential.journal import Journal
from tests.cluster.differential.metronome import Metronome
from tests.cluster.differential.play import Player
from tests.cluster.differential.rest import Stillness

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from tests.cluster.differential.outcome import Played
    from tests.cluster.differential.rest import Rest
    from tests.cluster.differential.sequence import Sequence

AT_ONCE: Final = int(os.environ.get("TASKGOV_TEST_LANES", "24"))
"""More would not be quicker with two processors, and stretch what has to happen within a second."""


class Company:
    """Players, a watch for all of them, and what tells when Kueue rests."""

    _numbers = itertools.count(time.time_ns() // 1_000_000 % 10_000_000)

    def __init__(self, kubeconfig: Path, log: Path | None) -> None:
        """Take a cluster, and the log of its Kueue where it can be read."""
        self._api = Api(kubeconfig)
        self._workloads = Workloads(self._api)
        self._metronome = Metronome(self._api)
        self._rest: Rest = Stillness(self._workloads) if log is None else Journal(log)

    def __enter__(self) -> Self:
        self._metronome.start(self._workloads)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workloads.stop()
        self._metronome.stop()  # its workloads go, which is the change that ends the watch
        self._rest.stop()
        self._workloads.wait_for_end()
        self._api.close()

    def play(self, sequences: Iterable[Sequence], *, tell: bool = True) -> list[Played]:
        """Play sequences, `AT_ONCE` at a time; return what came of each, in their order."""
        with ThreadPoolExecutor(AT_ONCE) as players:
            return list(players.map(lambda sequence: self._play(sequence, tell=tell), sequences))

    def play_one(self, sequence: Sequence, at_the_end: Callable[[Player], None]) -> Played:
        """Play a sequence alone, and look on at its end."""
        return self._player(sequence).play(at_the_end)

    def play_alone(self, sequence: Sequence, times: int) -> list[Played]:
        """Play a sequence so often, with nothing else beside it, or until it differs."""
        played: list[Played] = []
        while len(played) < times and not any(one.differences for one in played):
            played.append(self._play(sequence, tell=True))
        return played

    def differ(self, sequences: list[Sequence]) -> list[bool]:
        """Say of each sequence whether it differs."""
        return [bool(played.differences) for played in self.play(sequences, tell=False)]

    def _play(self, sequence: Sequence, *, tell: bool) -> Played:
        began = time.monotonic()
        try:
            played = self._player(sequence).play()
        except Exception as error:
            error.add_note(f"in sequence {sequence.seed}")
            raise
        if tell:
            seconds = time.monotonic() - began
            told = f"{len(played.steps)} steps, {played.compared} states, {len(played.differences)} differences"
            print(f"sequence {sequence.seed}: {told}, {seconds:.0f} seconds", *played.differences, sep="\n", flush=True)
        return played

    def _player(self, sequence: Sequence) -> Player:
        lane = f"q{next(self._numbers)}x"
        return Player(self._api, self._workloads, self._rest, sequence, lane)
