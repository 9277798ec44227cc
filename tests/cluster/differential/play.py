"""Play one sequence on both sides, step by step; after each step everything that is written must be the same."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.differential.api import LANE, key_of
from tests.cluster.differential.modelled import ModelSide
from tests.cluster.differential.outcome import Difference, Played, state_of, told
from tests.cluster.differential.real import RealSide
from tests.cluster.differential.rest import RestlessError
from tests.cluster.differential.sequence import Apply, Delete, Finish, Release, Step, Submit
from tests.cluster.kube import conditions

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.differential.api import Api, Workloads
    from tests.cluster.differential.rest import Rest
    from tests.cluster.differential.sequence import Sequence
    from tests.cluster.kube import Object

AGREE_SECONDS: Final = 5
_LATEST_START: Final = 0.6
"""No step begins later in a second: what one cycle reserves shall not fall into two seconds."""


class Player:
    """Plays one sequence; `lane` is the word in the names of its objects."""

    def __init__(self, api: Api, workloads: Workloads, rest: Rest, sequence: Sequence, lane: str) -> None:
        assert LANE.fullmatch(lane), lane
        self._lane = lane
        self._rest = rest
        self._sequence = sequence.named(lane)
        self.real = RealSide(api, workloads, self._sequence)
        self.keys: list[str] = []
        self._hurried = False
        self._stored: dict[tuple[str, str], Object] = {}
        self.played = Played(sequence)

    def play(self, at_the_end: Callable[[Player], None] | None = None) -> Played:
        """Play until the first difference; look on, `at_the_end`; take away what was made."""
        try:
            self._play()
            if at_the_end is not None:
                at_the_end(self)
        finally:
            self.real.end()
        return self.played

    def _play(self) -> None:
        began = time.time()
        stored = self.real.begin()
        self.model = ModelSide(stored, fair_sharing=self._sequence.fair_sharing)
        for one in stored:
            self._stored[one["kind"], one["metadata"]["name"]] = one
        self._rest.wait_for_rest(self._lane, began, batch=True, cohort=any(map(_has_cohort, self._queues())))
        for number, step in enumerate(self._sequence.steps):
            wait_for_an_early_moment()
            try:
                if not self._take(step):
                    continue
            except RestlessError as restless:
                sides = str(restless), "comes to rest", ("", "", None)
                self.played.differences.append(Difference(self._sequence.seed, number, told(step), "all", *sides))
                return
            self.played.steps.append((step, tuple(self.model.cycles)))
            if found := self._differences(number, step):
                self.played.differences += found
                return

    def _take(self, step: Step) -> bool:
        """Do a step on both sides; say whether there was anything to do."""
        began = time.time()
        key = self._picked(step)
        match step:
            case Submit(workload):
                stored = self.real.submit(workload)
                self.keys.append(key_of(stored))
                self._settle(began, self.model.submit, stored, [])
            case Apply(manifest):
                stored = self.real.apply(manifest)
                if not self._is_news(stored):
                    return False
                self._settle(began, self.model.apply, stored, self._queues_of(stored))
            case _ if key is None:
                return False
            case Finish():
                self.real.finish(key)
                self.keys.remove(key)
                self._settle(began, self.model.finish, key, [self._queue_of(key)])
            case Release():
                self.real.release(key)
                self._settle(began, self.model.release, key, [self._queue_of(key)])
            case Delete():
                self.real.delete(key)
                self.keys.remove(key)
                self._settle(began, self.model.delete, key, [self._queue_of(key)])
        return True

    def _settle(self, began: float, change: Callable[[Any], None], argument: Any, notified: list[Object]) -> None:
        """Wait until Kueue rests, then do the same to the model; `notified` are queues whose trees get another look."""
        cohort = any(map(_has_cohort, notified))
        self._rest.wait_for_rest(self._lane, began, batch=bool(notified), cohort=cohort)
        change(argument)
        self.model.settle(self._awaited_reservation)
        self._hurried = bool(notified) and self._rest.was_hurried(self._lane, began)

    def _awaited_reservation(self, key: str) -> str | None:
        """Return when quota was reserved for a workload; what Kueue has decided may still be on its way."""
        deadline = time.monotonic() + AGREE_SECONDS
        while (moment := self._reserved_at(key)) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return moment

    def _is_news(self, stored: Object) -> bool:
        """Say whether an object is another than before."""
        name = stored["kind"], stored["metadata"]["name"]
        before = self._stored[name]
        self._stored[name] = stored
        return bool(before["metadata"]["generation"] != stored["metadata"]["generation"])

    def _queues(self) -> list[Object]:
        return [one for (kind, _), one in self._stored.items() if kind == "ClusterQueue"]

    def _queue_of(self, key: str) -> Object:
        namespace, _, _ = key.partition("/")
        return self._stored["ClusterQueue", f"{namespace}-clusterqueue"]

    def _queues_of(self, changed: Object) -> list[Object]:
        """Return a changed queue, or those that use a changed flavor."""
        if changed["kind"] == "ClusterQueue":
            return [changed]
        name = changed["metadata"]["name"]
        return [queue for queue in self._queues() if name in _flavors_of(queue)]

    def _picked(self, step: Step) -> str | None:
        match step:
            case Finish(pick):
                among = [key for key in self.keys if self.model.holds_quota(key)]
            case Release(pick):
                among = [key for key in self.keys if self._leaves(key)]
            case Delete(pick):
                among = list(self.keys)
            case _:
                return None
        return sorted(among)[pick % len(among)] if among else None

    def _leaves(self, key: str) -> bool:
        told = conditions(self.model.workload(key)).get("Evicted")
        return told is not None and told["status"] == "True" and self.model.holds_quota(key)

    def _reserved_at(self, key: str) -> str | None:
        found = conditions(self.real.workload(key) or {}).get("QuotaReserved")
        return found["lastTransitionTime"] if found is not None and found["status"] == "True" else None

    def _differences(self, number: int, step: Step) -> list[Difference]:
        """Compare; give what is still on its way to the API server some time, then tell what differs."""
        if not (self._comes_to_agree() or self._agrees_by_chance()):
            return [
                Difference(self._sequence.seed, number, told(step), key, kueue, model, self._order_keys(key))
                for key, kueue in self._seen().items()
                for model in [state_of(self.model.workload(key))]
                if kueue != model
            ]
        self.played.compared += len(self.keys)
        self.played.over_quota |= isinstance(step, Apply) and self.model.is_over_quota()
        moments = [moment for key in self.keys if (moment := self._reserved_at(key))]
        self.played.ties |= len(set(moments)) < len(moments)
        self.played.going_round += self.model.possible > 1
        return []

    def _comes_to_agree(self) -> bool:
        deadline = time.monotonic() + AGREE_SECONDS
        while not self._agrees():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def _agrees_by_chance(self) -> bool:
        """Say whether the model may stand as Kueue does with what Kueue leaves to chance, or to the clock."""
        as_settled = self.model.kept()
        self.model.settle_in_any_turn(self._reserved_at)
        if self._agrees():
            self.played.equals += 1
            return True
        if self._hurried and self.model.settle_hurriedly(self._reserved_at) and self._agrees():
            self.played.hurried += 1
            return True
        self.model.restore(as_settled)
        return False

    def _order_keys(self, key: str) -> tuple[str, str, str | None]:
        metadata = (self.real.workload(key) or {"metadata": {"uid": "", "creationTimestamp": ""}})["metadata"]
        return metadata["uid"], metadata["creationTimestamp"], self._reserved_at(key)

    def _agrees(self) -> bool:
        """Say whether the model may stand as Kueue does; remember where only the words are those of an earlier look."""
        seen = self._seen()
        if self.model.keep(lambda world: all(state_of(world.workload(key)) == state for key, state in seen.items())):
            return True
        late = {key: self._in_the_last_words(key, state) for key, state in seen.items()}
        if self.model.keep(lambda world: all(state_of(world.workload(key)) == late[key] for key in late)):
            self.played.words_of_an_earlier_look += 1
            return True
        return False

    def _in_the_last_words(self, key: str, state: Object) -> Object:
        """Return the state with the model's words where Kueue's are those of another look of the same step."""
        waits = state["conditions"].get("QuotaReserved")
        modelled = state_of(self.model.workload(key))["conditions"].get("QuotaReserved")
        if not waits or not modelled or waits[2] == modelled[2] or waits[2] not in self.model.said(key):
            return state
        return {**state, "conditions": {**state["conditions"], "QuotaReserved": (*waits[:2], modelled[2])}}

    def _seen(self) -> dict[str, Object]:
        return {key: state_of(self.real.workload(key) or {}) for key in self.keys}


def wait_for_an_early_moment() -> None:
    """Wait for the next second when this one is nearly over."""
    phase = time.time() % 1
    if phase > _LATEST_START:
        time.sleep(1.02 - phase)


def _has_cohort(queue: Object) -> bool:
    return bool(queue["spec"].get("cohortName"))


def _flavors_of(queue: Object) -> set[str]:
    return {flavor["name"] for group in queue["spec"].get("resourceGroups", ()) for flavor in group["flavors"]}
