"""Play one sequence on both sides, step by step; after each step everything that is written must be the same."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

from tests.cluster.differential.api import LANE, key_of
from tests.cluster.differential.modelled import ModelSide
from tests.cluster.differential.outcome import Difference, Played, state_of, told
from tests.cluster.differential.real import RealSide
from tests.cluster.differential.rest import RestlessError
from tests.cluster.differential.sequence import Apply, Delete, Finish, Reclaim, Release, Scale, Step, Submit
from tests.cluster.differential.slices import a_slice, one_pod_less
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
        self._door_started = False
        self._released: str | None = None
        self._scaled: set[str] = set()
        self._stopped: set[str] = set()
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
            place = self._rest.place()
            try:
                if not self._take(step):
                    continue
            except RestlessError as restless:
                sides = str(restless), "comes to rest", ("", "", None)
                self.played.differences.append(Difference(self._sequence.seed, number, told(step), "all", *sides))
                self.played.log = self._rest.excerpt(self._lane, place)
                return
            self.played.steps.append((step, tuple(self.model.cycles)))
            if found := self._differences(number, step):
                self.played.differences += found
                self.played.log = self._rest.excerpt(self._lane, place)
                return

    def _take(self, step: Step) -> bool:
        """Do a step on both sides; say whether there was anything to do."""
        began = time.time()
        key = self._picked(step)
        self._released = None
        self._door_started = isinstance(step, Apply) and step.manifest["kind"] == "LocalQueue"
        match step:
            case Submit(workload):
                stored = self.real.submit(workload)
                self.keys.append(key_of(stored))
                self._settle(began, self.model.submit, stored, [])
            case Apply(manifest):
                if self._is_in_flight(manifest):
                    return False
                stored = self.real.apply(manifest)
                if not self._is_news(stored):
                    return False
                self._note_stop(stored)
                self._settle(began, self.model.apply, stored, self._queues_of(stored))
            case _ if key is None:
                return False
            case Finish():
                self._note_finish(key)
                self.real.finish(key)
                self.keys.remove(key)
                self._settle(began, self.model.finish, key, self._notified_by(key))
            case Release():
                self._released = key
                self.real.release(key)
                self._settle(began, self.model.release, key, self._notified_by(key))
            case Delete():
                self.real.delete(key)
                self.keys.remove(key)
                self._settle(began, self.model.delete, key, self._notified_by(key))
            case Reclaim():
                return self._reclaim(began, key)
            case Scale() if self._somebody_waits_for_victims():
                return False  # for a moment Kueue counts both slices: what it decides then is chance
            case Scale(_, change):
                self._scaled.add(key)
                stored = self.real.submit(a_slice(self.real.submitted(key), change))
                self.keys.append(key_of(stored))
                self._settle(began, self.model.submit, stored, [])
        return True

    def _reclaim(self, began: float, key: str) -> bool:
        """Let one more pod be done and not needed again; say whether there was one."""
        less = one_pod_less(self.model.workload(key))
        if less is None:
            return False
        self.real.reclaim(key, *less)
        told = self.real.workload(key) or {}
        status = {"reclaimablePods": told["status"]["reclaimablePods"]}
        self.played.reached.add("pods: not needed again")
        argument = {**self.real.submitted(key), "status": status}
        self._settle(began, self.model.reclaim, argument, self._notified_by(key), silent=True)
        return True

    def _settle(
        self,
        began: float,
        change: Callable[[Any], None],
        argument: Any,
        notified: list[Object],
        *,
        silent: bool = False,
    ) -> None:
        """Wait until Kueue rests, then do the same to the model; `notified` are queues whose trees get another look.

        So does the tree of a slice that is replaced, whenever that is.
        """
        cohort = any(map(_has_cohort, notified))
        self._rest.wait_for_rest(
            self._lane, began, batch=bool(notified), cohort=cohort, silent=silent, door=self._door_started
        )
        replaced = self._replaced()
        if replaced:
            finished = self._rest.wait_for_finish(self._lane, began)
            looked_at_again = [queue for key in replaced for queue in self._notified_by(key)]
            cohort = any(map(_has_cohort, looked_at_again))
            self._rest.wait_for_rest(self._lane, finished, batch=bool(looked_at_again), cohort=cohort, silent=True)
        change(argument)
        self.model.settle(self._awaited_reservation)
        self._hurried = bool(notified or replaced) and self._rest.was_hurried(self._lane, began)

    def _replaced(self) -> list[str]:
        """Return the slices that were finished in this step because another one took their place."""
        scaled = [key for key in self.keys if key in self._scaled]
        self.real.catch_up(scaled)
        return [key for key in scaled if "Finished" in conditions(self.real.workload(key) or {})]

    def _is_in_flight(self, changed: Object) -> bool:
        """Say whether a door is to be stopped while somebody behind it is looked at in cycle after cycle.

        Whether Kueue's scheduler has taken that workload out of its queue just then, and so keeps it, is chance.
        """
        if changed["kind"] != "LocalQueue" or not _is_stopped(changed):
            return False
        return self._somebody_waits_for_victims(changed["metadata"]["namespace"])

    def _somebody_waits_for_victims(self, namespace: str = "") -> bool:
        """Say whether a workload, of all or of a namespace, is looked at in cycle after cycle."""
        here = [key for key in self.keys if key.startswith(f"{namespace}/" if namespace else "")]
        waits = (conditions(self.model.workload(key)).get("QuotaReserved") for key in here)
        return any(one and "Pending the preemption" in one["message"] for one in waits)

    def _note_finish(self, key: str) -> None:
        if self._stopped_now(key):
            self.played.reached.add("done: in a stopped queue")

    def _note_stop(self, stored: Object) -> None:
        """Remember what has been stopped, or lacks a flavor: Kueue's controller says so on its workloads."""
        spec = stored["spec"]
        if _is_stopped(stored) or self._lacks_a_flavor(stored):
            self._stopped.add(stored["metadata"]["name"])
            kind = "flavor missing" if self._lacks_a_flavor(stored) else spec["stopPolicy"]
            self.played.reached.add(f"stopped: {stored['kind']} {kind}")

    def _lacks_a_flavor(self, queue: Object) -> bool:
        return any(("ResourceFlavor", name) not in self._stored for name in _flavors_of(queue))

    def _stopped_now(self, key: str) -> bool:
        queue, door = self._queue_of(key), self._door_of(key)
        return self._lacks_a_flavor(queue) or any(map(_is_stopped, (queue, door)))

    def _door_of(self, key: str) -> Object:
        namespace, _, _ = key.partition("/")
        return self._stored["LocalQueue", f"{namespace}-localqueue"]

    def _notified_by(self, key: str) -> list[Object]:
        """Return the queue of a workload that is done or gone: its tree gets another look, unless its door is stopped.

        A stopped LocalQueue is not known to Kueue's queues (`QueueAssociatedInadmissibleWorkloadsAfter`).
        """
        return [] if _is_stopped(self._door_of(key)) else [self._queue_of(key)]

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
        if changed["kind"] == "LocalQueue":
            return []
        name = changed["metadata"]["name"]
        return [queue for queue in self._queues() if name in _flavors_of(queue)]

    def _picked(self, step: Step) -> str | None:
        match step:
            case Finish(pick):
                among = [key for key in self.keys if self.model.holds_quota(key)]
            case Release(pick):
                among = [key for key in self.keys if self._leaves(key)]
            case Reclaim(pick):
                among = [key for key in self.keys if self._runs(key)]
            case Scale(pick):
                among = [key for key in self.keys if self._runs(key) and key not in self._scaled]
            case Delete(pick):
                among = list(self.keys)
            case _:
                return None
        return sorted(among)[pick % len(among)] if among else None

    def _leaves(self, key: str) -> bool:
        told = conditions(self.model.workload(key)).get("Evicted")
        return told is not None and told["status"] == "True" and self.model.holds_quota(key)

    def _runs(self, key: str) -> bool:
        return self.model.holds_quota(key) and not self._leaves(key)

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
        self._note_what_was_reached()
        self.played.over_quota |= isinstance(step, Apply) and self.model.is_over_quota()
        moments = [moment for key in self.keys if (moment := self._reserved_at(key))]
        self.played.ties |= len(set(moments)) < len(moments)
        self.played.going_round += self.model.possible > 1
        return []

    def _note_what_was_reached(self) -> None:
        """Note what is seen on workloads only; a slice that was replaced is looked at no longer."""
        for key, state in self._seen().items():
            if "Finished" in state["conditions"]:
                self.played.reached.add("slice: took the place of another")
                self.keys.remove(key)
            if _takes_fewer(self.real.submitted(key), state):
                self.played.reached.add("admitted: with fewer pods")
            if state["conditions"].get("Evicted", ("", ""))[1] in {"ClusterQueueStopped", "LocalQueueStopped"}:
                self.played.reached.add("drained")

    def _comes_to_agree(self) -> bool:
        deadline = time.monotonic() + AGREE_SECONDS
        while not self._agrees():
            if time.monotonic() > deadline:
                return self._agrees_at_last()
            time.sleep(0.1)
        return True

    def _agrees_at_last(self) -> bool:
        """Compare once more when Kueue rests and the watch has all that the API server has, however long that takes."""
        self._rest.wait_for_rest(self._lane, 0, batch=False, cohort=False)
        self.real.catch_up(self.keys)
        return self._agrees()

    def _agrees_by_chance(self) -> bool:
        """Say whether the model may stand as Kueue does with what Kueue leaves to chance, or to the clock."""
        as_settled = self.model.kept()
        self.model.settle_in_any_turn(self._reserved_at)
        if self._agrees():
            self.played.equals += 1
            return True
        if self._released is not None:
            self.model.settle_with_late_return(self._released, self._reserved_at)
            if self._agrees():
                self.played.late_returns += 1
                return True
        if self._door_started:
            self.model.settle_with_another_look(self._reserved_at)
            if self._agrees():
                self.played.started_doors += 1
                return True
        if self.model.settle_with_late_ends(self._reserved_at) and self._agrees():
            self.played.late_ends += 1
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
        return {key: self._of_the_scheduler(key, state_of(self.real.workload(key) or {})) for key in self.keys}

    def _of_the_scheduler(self, key: str, state: Object) -> Object:
        """Return the state with the model's words where Kueue's controller says that a queue is stopped.

        The scheduler does not look at such a workload; who writes these words of the embedded cluster is
        `taskgov_embedded.cluster.inadmissible`. Whether the controller is there before the queue has stopped, and so
        says nothing, is a race of two watches in Kueue.
        """
        waits = state["conditions"].get("QuotaReserved")
        if not waits or waits[:2] != ("False", "Inadmissible") or waits[2] not in self._words_of_stops(key):
            return state
        told = {kind: said for kind, said in state["conditions"].items() if kind != "QuotaReserved"}
        modelled = state_of(self.model.workload(key))["conditions"].get("QuotaReserved")
        if modelled is not None and modelled[0] == "False":
            told["QuotaReserved"] = modelled
        return {**state, "conditions": told}

    def _words_of_stops(self, key: str) -> set[str]:
        names = [("ClusterQueue", self._queue_of(key)), ("LocalQueue", self._door_of(key))]
        stopped = [(kind, one["metadata"]["name"]) for kind, one in names]
        words = {f"{kind} {name} is inactive" for kind, name in stopped if name in self._stopped}
        return words | {"ClusterQueue  doesn't exist"} if words else words  # a door that was started a moment ago


def wait_for_an_early_moment() -> None:
    """Wait for the next second when this one is nearly over."""
    phase = time.time() % 1
    if phase > _LATEST_START:
        time.sleep(1.02 - phase)


def _is_stopped(queue: Object) -> bool:
    return bool(queue["spec"].get("stopPolicy", "None") != "None")


def _has_cohort(queue: Object) -> bool:
    return bool(queue["spec"].get("cohortName"))


def _takes_fewer(workload: Object, state: Object) -> bool:
    counts = {one["name"]: one["count"] for one in workload["spec"]["podSets"]}
    return any(held[0] is not None and held[0] < counts[name] for name, held in state["holds"].items())


def _flavors_of(queue: Object) -> set[str]:
    return {flavor["name"] for group in queue["spec"].get("resourceGroups", ()) for flavor in group["flavors"]}
