"""Random lives of Workloads as Kueue writes them, the truth about their attempts, and looks at them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from taskgov.usage.attempt_facts import facts_with_attempt, nobody
from taskgov.usage.workload_facts import Told, WorkloadFacts
from taskgov.work.attempt import Attempt, End, Held
from taskgov.work.follow import Look, advance
from taskgov.work.memory import WorkMemory
from taskgov.work.standing import Standing
from taskgov.work.stems import stem_of

if TYPE_CHECKING:
    import random

GPU = "nvidia.com/gpu"
G5 = "ml.g5.12xlarge"
START = datetime(2026, 11, 20, 23, 40, tzinfo=UTC)  # midnight is in it
PERIOD = timedelta(minutes=1)


@dataclass
class Life:
    """One Workload: its states in order, and the attempts that it really had."""

    uid: str
    counts: bool
    """Whether Kueue counts evictions and execution time (releases before 0.12 do not)."""
    states: list[tuple[datetime, dict[str, Any]]] = field(default_factory=list)
    deleted: datetime | None = None
    attempts: list[Attempt] = field(default_factory=list)

    def at(self, when: datetime) -> dict[str, Any] | None:
        """Return its state at a moment; None before it is created and once it is deleted."""
        if self.deleted is not None and when >= self.deleted:
            return None
        return next((item for since, item in reversed(self.states) if since <= when), None)


class Writer:
    """Writes a life, as Kueue does."""

    def __init__(self, chance: random.Random, number: int, start: datetime) -> None:
        self.chance = chance
        self.now = start + timedelta(seconds=chance.randrange(1800))
        self.life = Life(f"uid-{number}", counts=chance.random() < 0.8)
        self.gpus = chance.choice((1, 4, 8))
        name = f"train-{number}"
        self.item: dict[str, Any] = {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Workload",
            "metadata": {
                "name": name,
                "namespace": "hyperpod-ns-team-a",
                "uid": self.life.uid,
                "creationTimestamp": _text(self.now),
            },
            "spec": {
                "queueName": "q",
                "priority": 70,
                "maximumExecutionTimeSeconds": 7200,
                "podSets": [
                    {
                        "name": "main",
                        "count": 1,
                        "template": {
                            "spec": {
                                "nodeSelector": {"node.kubernetes.io/instance-type": G5},
                                "containers": [{"name": "c", "resources": {"requests": {GPU: str(self.gpus)}}}],
                            }
                        },
                    }
                ],
            },
            "status": {"conditions": []},
        }
        self.conditions: dict[str, dict[str, str]] = {}
        self.attempt = Attempt(
            uid=self.life.uid,
            number=1,
            team="team-a",
            owner=None,
            stem=stem_of(name),
            kind="Workload",
            priority_class=None,
            priority=70,
            held=(Held(G5, GPU, self.gpus),),
            max_seconds=7200,
            created=self.now,
            queued=self.now,
        )

    def write(self) -> Life:
        self._state()
        for _ in range(self.chance.randrange(4)):
            self._pass()
            self._admit()
            self._pass()
            if self.chance.random() < 0.5:
                return self._end()
            self._evict()
        if self.chance.random() < 0.4:
            self._delete()
        return self.life

    def _pass(self) -> None:
        self.now += timedelta(seconds=self.chance.choice((2, 9, 40, 150, 400)) + self.chance.randrange(20))

    def _admit(self) -> None:
        for kind in ("Evicted", "Preempted"):
            if kind in self.conditions:
                self._set(kind, "False", "QuotaReserved")
        self._set("QuotaReserved", "True", "QuotaReserved")
        self._set("Admitted", "True", "Admitted")
        usage = {"name": "main", "count": 1, "flavors": {GPU: G5}, "resourceUsage": {GPU: str(self.gpus)}}
        self.item["status"]["admission"] = {"clusterQueue": "q", "podSetAssignments": [usage]}
        self._state()
        self.attempt = replace(self.attempt, admitted=self.now)

    def _evict(self) -> None:
        began = self.now
        self._set("Evicted", "True", "Preempted")
        self._set("Preempted", "True", "InCohortReclamation")
        if self.life.counts:
            stats = self.item["status"].setdefault(
                "schedulingStats", {"evictions": [{"reason": "Preempted", "count": 0}]}
            )
            stats["evictions"][0]["count"] += 1
        self._state()
        reason = "Preempted/InCohortReclamation"
        self._ended(End.EVICTED, reason)
        self.now += timedelta(seconds=1 + self.chance.randrange(30))  # its pods stop
        admitted = self.life.attempts[-1].admitted or began
        if self.life.counts:
            past = self.item["status"].get("accumulatedPastExecutionTimeSeconds", 0)
            ran = int((self.now - admitted).total_seconds())
            self.item["status"]["accumulatedPastExecutionTimeSeconds"] = past + ran
        self.item["status"].pop("admission")
        self._set("QuotaReserved", "False", "Pending")
        self._set("Admitted", "False", "NoReservation")
        self._state()
        self.attempt = replace(self.attempt, number=self.attempt.number + 1, queued=began, admitted=None)

    def _end(self) -> Life:
        if self.chance.random() < 0.2:
            self._delete()
            return self.life
        self._set("Finished", "True", "Succeeded")
        self._state()
        self._ended(End.FINISHED, "Succeeded")
        if self.chance.random() < 0.5:
            self.now += timedelta(seconds=1 + self.chance.randrange(300))
            self.life.deleted = self.now
        return self.life

    def _delete(self) -> None:
        self._pass()
        self.life.deleted = self.now
        self._ended(End.GONE, "")

    def _ended(self, end: End, reason: str) -> None:
        self.life.attempts.append(replace(self.attempt, ended=self.now, end=end, reason=reason))

    def _set(self, kind: str, status: str, reason: str) -> None:
        self.conditions[kind] = {
            "type": kind,
            "status": status,
            "reason": reason,
            "message": "",
            "lastTransitionTime": _text(self.now),
        }

    def _state(self) -> None:
        self.item["status"]["conditions"] = list(self.conditions.values())
        self.life.states.append((self.now, copy.deepcopy(self.item)))


@dataclass
class World:
    """Lives, and who looks at them."""

    lives: list[Life]
    memory: WorkMemory = field(default_factory=WorkMemory)
    seen: datetime | None = None
    """Up to when the changes were told."""
    looks: list[datetime] = field(default_factory=list)

    @classmethod
    def of(cls, chance: random.Random, number: int = 6) -> World:
        return cls([Writer(chance, n, START).write() for n in range(number)])

    def look(self, at: datetime, *, follows: bool) -> None:
        """Look at all of it, and remember."""
        self.memory = advance(self.memory, self.seen_at(at, follows=follows))
        self.looks.append(at)

    def seen_at(self, at: datetime, *, follows: bool) -> Look:
        told = self._told(at) if follows and self.seen else ()
        self.seen = at
        states = tuple(facts(item) for life in self.lives if (item := life.at(at)))
        return Look(at=at, period=PERIOD, states=states, standing=Standing(at), told=told)

    def _told(self, at: datetime) -> tuple[Told, ...]:
        events: list[tuple[datetime, str, Told]] = []
        for life in self.lives:
            for since, item in life.states:
                if self.seen is not None and self.seen < since <= at:
                    events.append((since, life.uid, Told(facts(item))))
            if life.deleted and self.seen is not None and self.seen < life.deleted <= at:
                last = Told(facts(life.states[-1][1]), is_last=True)
                events.append((life.deleted, life.uid, last))
        return tuple(event for *_, event in sorted(events, key=lambda event: event[:2]))


def facts(item: dict[str, Any]) -> WorkloadFacts:
    return facts_with_attempt(item, nobody)


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
