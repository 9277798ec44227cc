"""Read the jobs from the record of work, for advice and replays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.advice.past import Piece

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from taskgov.work.attempt import Attempt


def pieces_of(attempts: Iterable[Attempt], instance_type: str | None = None) -> Iterator[Piece]:
    """Yield the jobs of attempts, on one instance type or on all. Times are seconds since 1970.

    A Workload that was evicted is one job, with the run time of its longest attempt.
    """
    by_job: dict[str, list[Attempt]] = {}
    for attempt in attempts:
        if instance_type in {None, attempt.instance_type}:
            by_job.setdefault(attempt.uid, []).append(attempt)
    for tries in by_job.values():
        longest = max(tries, key=lambda attempt: attempt.run_seconds or 0)
        created = min(attempt.created for attempt in tries).timestamp()
        yield Piece(longest.team, created, longest.run_seconds or 0, longest.accelerators, longest.priority)
