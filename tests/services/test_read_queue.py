"""Estimates of starts list no workloads where these are too many: the last measurement and two requests say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from taskgov.contracts.steps import EstimateStartsRequest
from taskgov.estimates import all_waiting
from taskgov.estimates.all_waiting import waiting_of
from taskgov.estimates.scenes import queue_of
from taskgov.scheduling.status_reading import true_conditions
from taskgov.services import read_queue
from taskgov.services.estimate_starts import EstimateStarts
from taskgov.services.read_queue import ReadQueue
from taskgov.services.work_record import RecordedWork
from taskgov.usage.workload_facts import FollowedKueue
from taskgov.usage.workload_memory import LISTED_EACH
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.objects import ObjectStore
from tests.services.followed import MEMORY, Connections, Follower, Publisher, World
from tests.services.test_estimate_starts import Looked, past
from tests.support.memory import CLUSTER_ARN, FixedClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov.estimates.scenes import Queue
    from taskgov.snapshot.model import Snapshot

CROWD = 5


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Give a cluster in which `CROWD` workloads are as many as estimates are made for."""
    for module in (read_queue, all_waiting):
        monkeypatch.setattr(module, "MOST_PRESENT", CROWD)
    clock = FixedClock()
    store = ObjectStore(lambda: clock.at)
    server = ClusterApiServer(store).start()
    yield World(server, store, clock)
    server.stop()


def measured(world: World) -> Publisher:
    """Measure the cluster, and let something happen after it."""
    who = world.publisher(follows=True)
    who.publish()
    for _ in range(10):
        world.change()
    world.clock.advance(minutes=1)
    return who


def reader(world: World, who: Publisher) -> ReadQueue:
    connections: Any = Connections(world.server.url)
    follower = Follower(connections)
    return ReadQueue(world.cluster.hyperpod, follower, follower, world.clock, who.documents)


def read(world: World, who: Publisher) -> Snapshot:
    use = reader(world, who)
    return use(use.describe(CLUSTER_ARN))


def waiting(queue: Queue) -> set[str]:
    return {queue.uids[place] for place in waiting_of(queue.scene)}


@pytest.mark.parametrize("seed", range(4))
def test_what_is_known_of_a_crowd_is_what_a_list_says_of_who_waits_and_runs(
    world: World, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    world.chance.seed(seed)
    for _ in range(60):
        world.change()
    for more in ((), ("Finished",), ("Evicted",)):
        world._conditions(world.create(), "QuotaReserved", "Admitted", *more)
    world._conditions(world.create(), "Admitted")
    who = measured(world)
    before = dict(who.documents.stored)
    crowd = read(world, who)
    assert isinstance(crowd.kueue, FollowedKueue)
    assert who.documents.stored == before, "the next measurement still has to see what happened"
    monkeypatch.setattr(read_queue, "MOST_PRESENT", 1_000)
    listed = read(world, who)
    assert not isinstance(listed.kueue, FollowedKueue)
    facts, objects = queue_of(crowd, {}), queue_of(listed, {})
    true = {item["metadata"]["uid"]: true_conditions(item.get("status") or {}) for item in listed.kueue.workloads}
    # Of one that is evicted or deactivated, and still holds its quota, facts do not say whether it is to wait again.
    leaves = {item["metadata"]["uid"] for item in listed.kueue.workloads if item["spec"].get("active") is False}
    leaves = {uid for uid in true if "Admitted" in true[uid] and (uid in leaves or "Evicted" in true[uid])}
    assert set(facts.uids) - leaves == set(objects.uids) - leaves
    assert waiting(facts) == {uid for uid in waiting(objects) if "QuotaReserved" not in true[uid]}
    assert set(crowd.unreadable_objects) == set(listed.unreadable_objects)


def estimate(world: World, who: Publisher) -> tuple[str, ...]:
    looked = Looked(documents=who.documents).record(past())
    record = RecordedWork(who.documents)
    use = EstimateStarts(reader(world, who), who.documents, record, looked.failures, lambda: 0.0, 180)
    done = use(EstimateStartsRequest(cluster_arn=CLUSTER_ARN))
    assert looked.failures.reported == []
    assert done.estimated == 0
    return done.notes


def test_the_note_of_a_crowd_says_how_many_they_are(world: World) -> None:
    for _ in range(CROWD + 3):
        world.create()
    who = world.publisher(follows=True)
    who.publish()
    said = (f"no estimates: {CROWD + 3} workloads are in the cluster; estimates are made for at most {CROWD}",)
    assert estimate(world, who) == said
    world.clock.advance(minutes=5)
    del who.documents.stored[MEMORY]  # all are listed
    assert estimate(world, who) == said


@pytest.mark.parametrize("happens", ["no memory", "damage", "too old", "few since", "few"])
def test_where_it_is_not_known_that_they_are_too_many_they_are_listed(world: World, happens: str) -> None:
    made = [world.create() for _ in range(CROWD + (happens != "few"))]
    who = world.publisher(follows=True)
    who.publish()
    match happens:
        case "no memory":
            del who.documents.stored[MEMORY]
        case "damage":
            who.documents.stored[MEMORY] = b"damaged"
        case "too old":
            world.clock.advance(seconds=LISTED_EACH.total_seconds())
        case "few since":
            world.delete(made[0])
        case _:
            assert happens == "few"
    assert len(read(world, who).kueue.workloads) == len(made) - (happens == "few since")


def test_a_crowd_whose_changes_are_not_kept_any_more_is_listed_once(world: World) -> None:
    made = [world.create() for _ in range(CROWD + 2)]
    who = world.publisher(follows=True)
    who.publish()
    world.delete(made[0])
    world.store.compact()
    found = read(world, who)
    assert isinstance(found.kueue, FollowedKueue)
    assert len(found.kueue.facts) == CROWD + 1
