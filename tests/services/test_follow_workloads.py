"""Following the workloads: what is published is exactly what a full list would give, whatever happens in between."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.adapters.kubernetes import following
from taskgov.adapters.kubernetes.request import Requests
from taskgov.usage.workload_memory import FORM, LISTED_EACH
from taskgov_embedded.cluster import reading
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.objects import ObjectStore
from taskgov_embedded.cluster.requests import Refusal
from tests.services.followed import MEMORY, Publisher, World
from tests.support.memory import FixedClock

if TYPE_CHECKING:
    from collections.abc import Iterator

MINUTES = 12
QUICK = 0.02


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Return what makes a world from a seed; bookmarks come at once."""
    monkeypatch.setattr(reading, "BOOKMARK_BEFORE_END", following.WATCHES[0] - QUICK)
    monkeypatch.setattr(reading, "LOOK_SECONDS", QUICK)
    servers = []

    def world(seed: int = 0) -> World:
        clock = FixedClock()
        store = ObjectStore(lambda: clock.at)
        servers.append(ClusterApiServer(store).start())
        return World(servers[-1], store, clock, seed)

    yield world
    for server in servers:
        server.stop()


def disturb(world: World, who: Publisher, before: list[bytes]) -> None:
    """Let something go wrong with the memory, the server or the clock, or nothing."""
    memory = who.documents.stored.get(MEMORY, b"")
    match world.chance.randrange(16):
        case 0:
            world.store.compact()
        case 1:
            who.documents.stored.pop(MEMORY, None)
        case 2:
            cut = world.chance.randrange(len(memory) + 1)
            who.documents.stored[MEMORY] = memory[:cut]
        case 3 if memory:
            spoilt = bytearray(memory)
            spoilt[world.chance.randrange(10, len(memory))] ^= 1 << world.chance.randrange(8)
            who.documents.stored[MEMORY] = bytes(spoilt)
        case 4 | 5 | 6 if before:  # a minute that took long writes its memory over that of later ones
            who.documents.stored[MEMORY] = world.chance.choice(before)
        case 7 if memory:
            who.documents.stored[MEMORY] = edited(memory, eksArn="arn:aws:eks:us-east-1:111122223333:cluster/other")
        case 8 if memory:
            who.documents.stored[MEMORY] = edited(memory, form=FORM + 1)
        case 9:
            world.clock.advance(seconds=LISTED_EACH.total_seconds())
        case 10:
            world.clock.advance(minutes=-5)
        case 11 | 12:
            who.follow = None  # a new process
        case _:
            pass


def edited(memory: bytes, **fields: Any) -> bytes:
    return gzip.compress(json.dumps({**json.loads(gzip.decompress(memory)), **fields}).encode(), mtime=0)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(6))
def test_a_minute_that_follows_publishes_what_a_full_list_gives(make: Any, seed: int) -> None:
    world = make(seed)
    follows, lists = world.publisher(follows=True), world.publisher(follows=False)
    memories: list[bytes] = []
    followed = 0
    for _ in range(MINUTES):
        for _ in range(world.chance.randrange(25)):
            world.change()
        world.clock.advance(minutes=1)
        disturb(world, follows, memories)
        for _ in range(world.chance.choice((1, 1, 2))):  # the schedule may ask twice
            follows.publish()
            lists.publish()
        followed += follows.relisted().count("")
        assert follows.drained() == lists.drained()
        memories.append(follows.documents.stored[MEMORY])
    assert followed >= MINUTES / 3


def started(make: Any, workloads: int = 30) -> tuple[World, Publisher]:
    """Return a world after the first minute."""
    world = make()
    for _ in range(workloads):
        world.create()
    who = world.publisher(follows=True)
    who.publish()
    assert who.relisted() == []  # the first minute is not to follow
    return world, who


def minute(world: World, who: Publisher) -> str:
    """Publish one more minute, and return why all were listed; "" when they were followed."""
    who.drained()
    world.clock.advance(minutes=1)
    who.publish()
    (why,) = who.relisted()
    return why


def test_a_minute_reads_as_many_workloads_as_changed_and_one_more(make: Any) -> None:
    for size in (30, 60):
        world, who = started(make, size)
        for changes in (0, 1, 7):
            for _ in range(changes):
                world.create()
            assert minute(world, who) == ""
            assert who.objects_read() == [1 + changes]


def asked(world: World, calls: int) -> list[dict[str, str]]:
    return [call.query for call in world.server.calls[calls:] if call.path.endswith("/workloads")]


def test_a_minute_asks_for_one_workload_and_for_what_changed_since(make: Any) -> None:
    world, who = started(make)
    known, calls = world.store.resource_version, len(world.server.calls)
    world.create()
    minute(world, who)
    first, watch = asked(world, calls)
    assert first == {"limit": "1"}
    assert watch == {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": "3", "resourceVersion": known}


def test_where_nothing_at_all_was_written_nobody_watches(make: Any) -> None:
    world, who = started(make)
    calls = len(world.server.calls)
    assert minute(world, who) == ""
    assert asked(world, calls) == [{"limit": "1"}]


def test_writes_of_other_types_let_the_version_advance_by_a_bookmark(make: Any) -> None:
    world, who = started(make)
    for number in range(3):
        world.store.apply({"kind": "Node", "metadata": {"name": f"n-{number}"}})
        world.store.compact() if number == 1 else None
        before = json.loads(gzip.decompress(who.documents.stored[MEMORY]))["resourceVersion"]
        why = minute(world, who)
        assert why == ("the version that is known is too old" if number == 1 else "")
        after = json.loads(gzip.decompress(who.documents.stored[MEMORY]))["resourceVersion"]
        assert int(after) == int(before) + 1


def test_a_version_that_is_too_old_lists_all(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world, who = started(make)
    world.create()
    world.store.compact()
    assert minute(world, who) == "the version that is known is too old"
    assert minute(world, who) == ""
    world.create()
    # the same as an answer of HTTP
    watch = Requests.watch

    def gone(api: Any, *more: Any) -> Any:
        world.server.fail_next(410)
        return watch(api, *more)

    monkeypatch.setattr(Requests, "watch", gone)
    assert minute(world, who) == "the version that is known is too old"


def test_a_server_that_went_back_lists_all(make: Any) -> None:
    world, who = started(make)
    world.store._version -= 5  # restored from a backup
    assert "before the one that is known" in minute(world, who)


def test_a_watch_that_does_not_catch_up_in_time_lists_all(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world, who = started(make)
    monkeypatch.setattr(following, "WATCHES", (1, 1))
    world.store.apply({"kind": "Node", "metadata": {"name": "n"}})  # no event, and no bookmark in so short a watch
    assert minute(world, who) == "the watch has not caught up in time"


def test_rights_of_a_release_before_list_all_and_say_so(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world, who = started(make)
    world.create()
    authorize = ClusterApiServer._authorize

    def no_watch(server: ClusterApiServer, verb: str, *more: Any) -> None:
        if verb == "watch":
            raise Refusal(403, "Forbidden", "workloads is forbidden: User cannot watch")
        authorize(server, verb, *more)

    monkeypatch.setattr(ClusterApiServer, "_authorize", no_watch)
    assert "cannot watch" in minute(world, who)


LINES = {
    "not JSON": b"{",
    "an event SURPRISE": b'{"type": "SURPRISE", "object": {"metadata": {"resourceVersion": "999"}}}',
    "without a version": b'{"type": "ADDED", "object": {"metadata": {"name": "w"}}}',
    "has no name": b'{"type": "ADDED", "object": {"metadata": {"resourceVersion": "999"}}}',
    "an event None": b"[]",
    "the watch ended: 500 broken": b'{"type": "ERROR", "object": {"code": 500, "message": "broken"}}',
}


@pytest.mark.parametrize("why", LINES)
def test_an_event_that_cannot_be_followed_lists_all(make: Any, monkeypatch: pytest.MonkeyPatch, why: str) -> None:
    world, who = started(make)
    world.create()
    monkeypatch.setattr(Requests, "watch", lambda *_: iter([LINES[why]]))
    assert why in minute(world, who)


def test_more_changes_than_a_watch_is_for_list_all(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    world, who = started(make)
    monkeypatch.setattr(following, "MOST_EVENTS", 2)
    for _ in range(3):
        world.create()
    assert minute(world, who) == "more changed than a watch is for"


def test_a_memory_that_cannot_be_read_is_said(make: Any) -> None:
    world, who = started(make)
    who.documents.stored[MEMORY] = b"nothing"
    assert "the memory cannot be read" in minute(world, who)
    who.documents.stored[MEMORY] = edited(who.documents.stored[MEMORY], form=FORM + 1)
    assert f"form {FORM + 1}" in minute(world, who)


def test_after_an_hour_all_are_listed(make: Any) -> None:
    world, who = started(make)
    world.clock.advance(hours=1)
    who.publish()
    assert who.relisted() == []
    listed_at = json.loads(gzip.decompress(who.documents.stored[MEMORY]))["listedAt"]
    assert datetime.fromisoformat(listed_at) == world.clock.at.astimezone(UTC)


def test_the_memory_has_nothing_of_a_job_but_names(make: Any) -> None:
    world, who = started(make)
    item = world.create()
    container = item["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
    container |= {
        "command": ["train", "--token=hunter2"],
        "env": [{"name": "A", "value": "hunter3"}],
        "image": "repo/x",
    }
    world.write({**item, "metadata": {**item["metadata"], "annotations": {"note": "private"}}})
    minute(world, who)
    text = gzip.decompress(who.documents.stored[MEMORY]).decode()
    assert item["metadata"]["name"] in text
    assert not any(word in text for word in ("hunter", "repo/x", "private", "command", "containers", "image"))


def test_few_workloads_are_listed_with_one_request_and_not_kept(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.services.followed.Follower.list_up_to", 30)
    world = make()
    for _ in range(30):
        world.create()
    who = world.publisher(follows=True)
    for _ in range(2):
        calls = len(world.server.calls)
        who.publish()
        assert asked(world, calls) == [{"limit": "500"}]
    assert MEMORY not in who.documents.stored
    world.create()
    who.publish()
    assert MEMORY in who.documents.stored
