"""Batches: jobs submitted one right after the other, whose run times are correlated in a future."""

from __future__ import annotations

import random
from itertools import pairwise
from statistics import NormalDist, correlation
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.estimates.arrivals import BLOCK, DAY, Past
from taskgov.estimates.batches import BETWEEN, GAP, NO_BATCH, WITHIN, batches
from taskgov.estimates.flat.cycling import MICRO, Lots, run_of
from taskgov.estimates.flat.luck import normal
from taskgov.estimates.flat.tabling import Lasted
from taskgov.estimates.random_run_times import RandomRunTimes
from taskgov.estimates.requests import Arrival, Ran, Request
from taskgov.estimates.run_times import RunTimes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Draws = Callable[[RunTimes, float, Sequence[int], float], list[float]]

NORMAL = NormalDist()
JOB = Request("a", 1)
JOBS = st.lists(st.tuples(st.sampled_from([("a",), ("b",)]), st.floats(0, 600)), max_size=20)


@given(JOBS, st.randoms(use_true_random=False))
def test_batches_do_not_depend_on_the_order(jobs: list[tuple[tuple[str, ...], float]], chance: random.Random) -> None:
    mixed = list(range(len(jobs)))
    chance.shuffle(mixed)
    first, second = batches(jobs), batches([jobs[place] for place in mixed])
    for one in range(len(jobs)):
        for other in range(len(jobs)):
            assert (first[mixed[one]] == first[mixed[other]]) == (second[one] == second[other])


@given(JOBS)
def test_a_batch_is_of_one_group_and_has_no_longer_gaps(jobs: list[tuple[tuple[str, ...], float]]) -> None:
    found = batches(jobs)
    for batch in set(found):
        mine = [job for job, of in zip(jobs, found, strict=True) if of == batch]
        assert len({group for group, _ in mine}) == 1
        times = sorted(at for _, at in mine)
        assert all(then - first <= GAP for first, then in pairwise(times))
        others = [at for (group, at), of in zip(jobs, found, strict=True) if of != batch and group == mine[0][0]]
        assert all(at < times[0] - GAP or at > times[-1] + GAP for at in others)


def flat_draws(run_times: RunTimes, part: float, of: Sequence[int], age: float) -> list[float]:
    table = Lasted(run_times, part)
    row = table.row(JOB, age, None)
    state: Any = SimpleNamespace(run=[-1] * len(of), prospect=[row] * len(of), batch=list(of))
    luck = [12345.0, 67890.0]
    lots = Lots(table.lasting(), [normal(luck)], [NO_BATCH], luck)
    return [run_of(state, lots, job) / MICRO for job in range(len(of))]


def plain_draws(run_times: RunTimes, part: float, of: Sequence[int], age: float) -> list[float]:
    workload = cast("Any", SimpleNamespace(created=0))
    chance = random.Random(1)  # noqa: S311 -- the same each time, no secret
    luck = RandomRunTimes(chance, part, run_times)
    if age:
        present: Any = [SimpleNamespace(request=JOB, ran=age, fixed=None, workload=workload)]
        again = RandomRunTimes(chance, part, run_times, present)
        return [again.begin()[0] for _ in of]
    return [luck.seconds(JOB, batch) for batch in of]


RUNS = RunTimes(Ran(JOB, float(place), float(1000 + 10 * place), True) for place in range(60))


@pytest.mark.parametrize("draws", [flat_draws, plain_draws])
@pytest.mark.parametrize("part", [0.0, 0.6])
@pytest.mark.parametrize("size", [1, 4000])
def test_run_times_of_a_batch_resemble_one_another(draws: Draws, part: float, size: int) -> None:
    times = draws(RUNS, part, [place // size for place in range(4000)], 0.0)
    rank = {place: number for number, place in enumerate(sorted(range(len(times)), key=times.__getitem__))}
    scores = [NORMAL.inv_cdf((rank[place] + 0.5) / len(times)) for place in range(len(times))]
    keeps = BETWEEN if size == 1 else WITHIN
    for lag in (1, 5, 50):
        assert correlation(scores[:-lag], scores[lag:]) == pytest.approx(part * keeps**lag, abs=0.12)


@pytest.mark.parametrize("draws", [flat_draws, plain_draws])
@pytest.mark.parametrize("age", [0.0, 1200.0, 30_000.0])
def test_correlation_does_not_change_a_single_run_time(draws: Draws, age: float) -> None:
    alone, together = (sorted(draws(RUNS, part, range(20_000), age)) for part in (0.0, 0.6))
    for place in (2_000, 10_000, 18_000):
        assert together[place] == pytest.approx(alone[place], rel=0.06)


def test_copies_of_a_past_batch_are_a_batch_in_each_block() -> None:
    now = 20 * DAY
    burst = [Arrival(JOB, day * DAY + 1000.0 + 10 * number) for day in range(20) for number in range(5)]
    chance = random.Random(1)  # noqa: S311 -- the same each time, no secret
    coming = list(Past(burst, now, ((0.0, now),)).again(2 * DAY, chance))
    by_block: dict[int, set[int]] = {}
    for come in coming:
        by_block.setdefault(int(come.after // BLOCK), set()).add(come.batch)
    assert len(by_block) == 2
    assert [len(found) for found in by_block.values()] == [1, 1]
    assert len(set.union(*by_block.values())) == 2
    assert all(batch < NO_BATCH for found in by_block.values() for batch in found)  # none is that of a present job
