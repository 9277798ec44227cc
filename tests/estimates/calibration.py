"""Are estimates right as often as they say? Independent queues of a known law, and how often each quantile was hit."""

from __future__ import annotations

import random
from typing import NamedTuple

from taskgov.estimates.batches import TOGETHER
from taskgov.estimates.drawing import Drawing, waits_of
from taskgov.estimates.quantiles import estimate_of
from tests.estimates.queues import SPAN, Kind, Queue


class Hits(NamedTuple):
    """How many estimates were made, and of how many the half and the nine of ten were hit."""

    estimates: int
    half: float
    nine: float


def played(runs: range, futures: int, looks: int, kind: Kind = Kind.EXPONENTIAL) -> Hits:
    """Play independent queues, and estimate in each at moments that are far apart."""
    drawing = Drawing(futures, 2 * 86400.0, together=TOGETHER if kind is Kind.BATCHES else 0.0)
    half = nine = number = 0
    for seed in runs:
        queue = Queue(seed, kind)
        for look in range(looks):
            job = queue.waiting_after(SPAN * (0.4 + 0.5 * look / looks))
            if job is None:
                continue
            at = queue.rows[job][0]
            jobs, scene = queue.scene(at)
            chance = random.Random(f"{seed} {look}")  # noqa: S311 -- the same each time, no secret
            waits = waits_of(scene, jobs.index(job), queue.run_times(at), queue.past(at), chance, drawing)
            said, waited = estimate_of(waits), queue.start[job] - at
            number += 1
            half += waited <= said.half
            nine += waited <= said.nine
    return Hits(number, half / number, nine / number)
