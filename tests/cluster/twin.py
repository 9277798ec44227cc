"""One sequence on the real Kueue and on `taskgov.scheduling` at once; what differs after a step is a `Difference`."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from taskgov.hyperpod.names import namespace_of
from taskgov.scheduling import KueueModel, ManagerConfig, settle
from tests.cluster.job_sequences import Complete, Edit, Sequence, Step, Submit
from tests.cluster.kube import KUEUE, Kube, Object, conditions
from tests.cluster.workbench import complete, govern, submit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.hyperpod.model import ComputeQuota

AGREE_SECONDS: Final = 30
"""Kueue gives inadmissible workloads another look once a second; some steps need several looks, and a loaded machine
takes its time. Only a difference takes as long."""
STEADY_SECONDS: Final = 0.4
LOOP_SECONDS: Final = 4
"""After this, evictions are those of a loop that goes on, not of the step that began it."""
_KINDS: Final = ("ResourceFlavor", "WorkloadPriorityClass", "ClusterQueue", "LocalQueue")


@dataclass(frozen=True, slots=True)
class State:
    """How a workload stands: where admitted and with which flavors, why preempted last, what its conditions say."""

    queue: str | None
    flavors: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    preempted: tuple[str, str] | None


@dataclass(frozen=True, slots=True)
class Difference:
    """A step after which Kueue and the model do not agree on a workload."""

    seed: int
    step: int
    what: str
    workload: str
    kueue: object
    model: object


class Twin:
    """Plays a sequence on both."""

    def __init__(self, kube: Kube, played: Sequence) -> None:
        self._kube = kube
        self._played = played
        self._quotas: dict[str, ComputeQuota] = {}
        self._world = KueueModel(ManagerConfig(fair_sharing=played.policy.fair_share == "Enabled"))
        self._jobs: dict[str, tuple[str, str]] = {}
        self.compared = 0
        self.preemptions = 0
        self.loop: tuple[str, ...] = ()

    def play(self) -> list[Difference]:
        """Return the first differences; what follows a difference, or a loop of preemptions, is no news."""
        self._govern({one.compute_quota_target.team_name: one for one in self._played.quotas})
        for number, step in enumerate(self._played.steps):
            _wait_for_a_new_second()
            self._take(step)
            if self.loop:
                return [] if self._kueue_loops_too() else [self._no_loop(number, step)]
            if found := self._differences(number, step):
                return found
        return []

    def _take(self, step: Step) -> None:
        match step:
            case Submit():
                name = submit(self._kube, step.team, step.name, step.requests, pods=step.pods, priority=step.priority)
                key = f"{namespace_of(step.team)}/{name}"
                self._jobs[key] = (step.team, step.name)
                stored = self._kube.get(KUEUE, "Workload", name, namespace_of(step.team))
                self._world.apply({**stored, "status": {}})
            case Edit(quota):
                self._govern({**self._quotas, quota.compute_quota_target.team_name: quota})
            case Complete(pick):
                self._complete(pick)
        self._settle()

    def _govern(self, quotas: dict[str, ComputeQuota]) -> None:
        self._quotas = quotas
        rendered = govern(self._kube, quotas.values(), self._played.policy)
        self._world.load(rendered.namespaces)
        for kind in _KINDS:
            self._world.load(self._kube.list(KUEUE, kind))

    def _complete(self, pick: int) -> None:
        running = sorted(key for key, state in self._modelled().items() if state.queue)
        if not running:
            return
        key = running[pick % len(running)]
        complete(self._kube, *self._jobs.pop(key))
        self._world.finish(key, datetime.now(UTC))

    def _settle(self) -> None:
        """Let the model come to rest, or find that its rules go round."""
        settlement = settle(self._world, datetime.now(UTC))
        assert settlement.settled or settlement.loop, "the model neither comes to rest nor finds a loop"
        self.preemptions += len(settlement.preempted)
        self.loop = settlement.loop

    def _kueue_loops_too(self) -> bool:
        """Say whether Kueue goes on evicting the workloads of the loop, without anybody's doing."""
        time.sleep(LOOP_SECONDS)
        before, deadline = self._evictions(), time.monotonic() + AGREE_SECONDS
        while self._evictions() <= before:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _evictions(self) -> int:
        """Count how often Kueue evicted the workloads of the loop, as it keeps count itself."""
        found = [one for one in self._kube.list(KUEUE, "Workload") if _key(one) in self.loop]
        counts = [one.get("status", {}).get("schedulingStats", {}).get("evictions", []) for one in found]
        return sum(entry["count"] for entries in counts for entry in entries)

    def _no_loop(self, number: int, step: Step) -> Difference:
        return Difference(self._played.seed, number, repr(step), ", ".join(self.loop), "comes to rest", "a loop")

    def _differences(self, number: int, step: Step) -> list[Difference]:
        """Wait until both agree, and see that it stays so; else tell what differs."""
        deadline = time.monotonic() + AGREE_SECONDS
        agreed_since: float | None = None
        expected = self._modelled()
        while True:
            real, now = self._real(), time.monotonic()
            agreed_since = (agreed_since or now) if real == expected else None
            if agreed_since is not None and now - agreed_since > STEADY_SECONDS:
                self.compared += len(real)
                return []
            if now > deadline:
                return [
                    Difference(self._played.seed, number, repr(step), key, real.get(key), expected.get(key))
                    for key in sorted({*real, *expected})
                    if real.get(key) != expected.get(key)
                ]
            time.sleep(0.1)

    def _real(self) -> dict[str, State]:
        found = self._kube.list(KUEUE, "Workload")
        keyed = {_key(one): one for one in found}
        return {key: state_of(keyed[key]) for key in self._jobs if key in keyed}

    def _modelled(self) -> dict[str, State]:
        return {key: state_of(self._world.workload(key)) for key in self._jobs}


def _key(workload: Object) -> str:
    return f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"


def _wait_for_a_new_second() -> None:
    """Kubernetes keeps whole seconds: let steps that follow one another have moments that differ."""
    time.sleep(1.05 - time.time() % 1)


def state_of(workload: Mapping[str, Any]) -> State:
    """Read how a workload stands."""
    status: Object = {"status": workload.get("status") or {}}
    admission = status["status"].get("admission") or {}
    sets = admission.get("podSetAssignments", ())
    preempted = conditions(status).get("Preempted")
    told = preempted if preempted and preempted["status"] == "True" else None
    return State(
        queue=admission.get("clusterQueue"),
        flavors=tuple((one["name"], tuple(sorted((one.get("flavors") or {}).items()))) for one in sets),
        preempted=(told["reason"], told["message"]) if told else None,
    )
