"""How much does the record of a busy day take?"""

import random
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

from taskgov.work.attempt import End, Held
from taskgov.work.day import Day, to_bytes
from taskgov.work.measured import Span
from taskgov.work.standing import Line, Standing
from tests.work.test_record import G5, GPU, MIDNIGHT, an_attempt

JOBS, TEAMS = 750, 10


def test_a_day_of_750_jobs_is_about_75_kilobytes() -> None:
    chance = random.Random(7)  # noqa: S311 - a day, not a secret
    second = timedelta(seconds=1)
    attempts, moments = [], []
    for _ in range(JOBS):
        queued = MIDNIGHT + chance.randrange(60_000) * second
        admitted = queued + chance.randrange(9_000) * second
        ended = admitted + chance.randrange(17_000) * second
        moments += [admitted, ended]
        attempts.append(
            replace(
                an_attempt(str(UUID(int=chance.getrandbits(128)))),
                team=f"team-{chance.randrange(TEAMS)}",
                owner=f"{chance.getrandbits(64):016x}",
                stem=f"train-{chance.randrange(40)}b",
                held=(Held(G5, GPU, chance.choice((1, 2, 4, 8))),),
                created=queued,
                queued=queued,
                admitted=admitted,
                ended=ended,
                end=End.FINISHED,
                reason="Succeeded",
            )
        )
    looks = sorted({MIDNIGHT + -(-(at - MIDNIGHT) // timedelta(minutes=1)) * timedelta(minutes=1) for at in moments})
    standings = tuple(
        Standing(
            at,
            {
                (f"team-{t}", G5, GPU): Line(64, chance.randrange(80), chance.randrange(16), chance.randrange(16))
                for t in chance.sample(range(TEAMS), 2)
            },
            whole=not n,
        )
        for n, at in enumerate(looks)
    )
    size = len(
        to_bytes(Day(tuple(attempts), (Span(MIDNIGHT, MIDNIGHT + timedelta(days=1)),), standings), MIDNIGHT.date())
    )
    assert 40_000 < size < 90_000, size
