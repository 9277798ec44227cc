"""When is a job done that ends by itself? Its time runs while all its pods run, and starts again when it is stopped."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from taskgov_embedded.cluster.jobs import is_suspended
from taskgov_embedded.cluster.objects import TYPE_OF_KIND, KubeObject, ObjectStore, key_of
from taskgov_embedded.cluster.states import pods_belonging_to

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime


@dataclass(slots=True)
class _Run:
    plural: str
    namespace: str
    name: str
    lasts: timedelta
    done_at: datetime | None = None


class TimedRuns:
    """The jobs that end by themselves, by uid. They keep no checkpoints: who is stopped starts from nothing."""

    def __init__(self, store: ObjectStore, now: Callable[[], datetime]) -> None:
        self._store = store
        self._now = now
        self._runs: dict[str, _Run] = {}

    def add(self, job: KubeObject, seconds: int) -> None:
        """Let a stored job end once all its pods have run for so long."""
        plural = TYPE_OF_KIND[job["kind"]].plural
        self._runs[job["metadata"]["uid"]] = _Run(plural, *key_of(job), timedelta(seconds=seconds))

    def forget(self, job: KubeObject) -> None:
        """Stop counting a job that is gone."""
        self._runs.pop(job["metadata"]["uid"], None)

    def begin_again(self, uids: Iterable[str]) -> None:
        """Begin from nothing, with those of these that are jobs with a time."""
        for uid in uids:
            if uid in self._runs:
                self._runs[uid].done_at = None

    def start(self) -> None:
        """Start the time of every job whose pods all run now."""
        for run in self._runs.values():
            job = self._store.find(run.plural, run.name, run.namespace)
            if run.done_at is None and job is not None and not is_suspended(job) and self._runs_in_full(job):
                run.done_at = self._now() + run.lasts

    def take_done(self) -> list[KubeObject]:
        """Return the jobs whose time is over, and forget them."""
        done = [uid for uid, run in self._runs.items() if run.done_at is not None and run.done_at <= self._now()]
        ended = [self._runs.pop(uid) for uid in done]
        return [self._store.get(run.plural, run.name, run.namespace) for run in ended]

    def next_end(self) -> datetime | None:
        """Return when the next job will be done if nothing stops it."""
        return min((run.done_at for run in self._runs.values() if run.done_at is not None), default=None)

    def _runs_in_full(self, job: KubeObject) -> bool:
        pods = pods_belonging_to(self._store, job)
        return bool(pods) and all(pod["status"]["phase"] == "Running" for pod in pods)
