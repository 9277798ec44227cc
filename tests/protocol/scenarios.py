"""What is explored: how often each thing that nobody controls may happen, in each exploration."""

from typing import Final

from tests.protocol.explore import Exploration, Explored
from tests.protocol.functions import EPOCH
from tests.protocol.state import Scenario
from tests.protocol.world import World
from tests.statemachines.machines import definition

SPENT: Final = 9400
"""Events in a history after which one more run is possible, and no second one."""

SMALL: Final = (
    Scenario("two hints", {"hint": 2}),
    Scenario("a stop", {"hint": 1, "stop": 1}),
    Scenario("a stop that nobody hears of", {"hint": 1, "stop": 1, "unheard": 1, "old": 1}),
    Scenario("a lost answer", {"hint": 1, "lost": 1}),
    Scenario("a command", {"hint": 1, "command": 1}),
    Scenario("a rollback", {"hint": 1, "rollback": 1}),
    Scenario("a cluster that cannot be read", {"hint": 1, "unreadable": 4}),
    Scenario("an approval", {"hint": 1, "stop": 1}, approval=True),
    Scenario("a long history", {"hint": 2}, spent=SPENT),
    Scenario("a lock without an end", {"hint": 1}, item={"lockOwner": {"S": "nobody"}}),
)
"""Seconds, all of them: part of `make test-long`."""

NOBODYS: Final = {"lockExpires": {"N": str(int(EPOCH.timestamp()) + 400)}}
"""Half an item, left by a person: a lease without an owner."""

FULL: Final = (
    Scenario("an execution that is started by hand", {}, by_hand=True),
    Scenario("an execution that is started by hand, and asks", {}, by_hand=True, approval=True),
    Scenario("a lease without an owner", {"hint": 1}, item=NOBODYS, repaired=False),
    Scenario("a lease without an owner, and a command", {"command": 1}, item=NOBODYS, repaired=False),
    Scenario("a table that is exchanged", {"hint": 1, "duplicate": 1, "restore": 1}),
    Scenario("a table that is exchanged, and a stop", {"hint": 1, "stop": 1, "restore": 1}),
    Scenario("a table that is exchanged, and a command", {"hint": 1, "command": 1, "restore": 1}),
    Scenario("a duplicate", {"hint": 1, "duplicate": 1}),
    Scenario("a lock that looks old", {"hint": 1, "duplicate": 1, "old": 1}),
    Scenario("an approval and a duplicate", {"hint": 1, "duplicate": 1}, approval=True),
    Scenario("an approval and a lost answer", {"hint": 1, "lost": 1}, approval=True),
    Scenario("an approval, a duplicate and a lost answer", {"hint": 1, "duplicate": 1, "lost": 1}, approval=True),
    Scenario("a long history and a delay", {"hint": 1, "duplicate": 1, "time": 1}, spent=SPENT),
    Scenario("a stop and a redrive at once", {"hint": 1, "stop": 1, "redrive": 1}),
    Scenario("two commands and a delay", {"command": 2, "time": 1}),
    Scenario("a command that is killed at once", {"hint": 1, "command": 1, "kill": 1}),
    Scenario("three hints", {"hint": 3}),
    Scenario("two lost answers", {"hint": 1, "lost": 2, "time": 1}),
    Scenario("a delay", {"hint": 2, "time": 1}),
    Scenario("two delays", {"hint": 1, "time": 2, "duplicate": 1}),
    Scenario("a stop and a delay", {"hint": 1, "stop": 1, "time": 1, "lost": 1}),
    Scenario("a stop that nobody hears of, and two hints", {"hint": 2, "stop": 1, "unheard": 1, "old": 1}),
    Scenario("a crash", {"hint": 2, "crash": 1}),
    Scenario("a function that is called twice", {"hint": 2, "twice": 1}),
    Scenario("a function that is called twice, and a delay", {"hint": 1, "twice": 1, "time": 1, "duplicate": 1}),
    Scenario("a step that fails", {"hint": 2, "fail": 1}),
    Scenario("a command and a lost answer", {"hint": 1, "command": 1, "lost": 1}),
    Scenario("a command and a delay", {"hint": 1, "command": 1, "time": 1}),
    Scenario("a rollback and a delay", {"hint": 1, "rollback": 1, "time": 1}),
    Scenario("a command that is killed", {"hint": 1, "command": 1, "kill": 1, "time": 1}),
    Scenario("a command that is interrupted", {"hint": 1, "command": 1, "interrupt": 1, "lost": 1}),
    Scenario("a lock without an end, and a command", {"command": 1}, item={"lockOwner": {"S": "nobody"}}),
    Scenario("approvals", {"hint": 2}, approval=True),
    Scenario("approvals and a lost answer", {"hint": 2, "lost": 1}, approval=True),
    Scenario("an approval and a delay", {"hint": 1, "time": 1, "duplicate": 1}, approval=True),
    Scenario("an approval that expires", {"hint": 1, "expire": 2}, approval=True),
    Scenario("an approval and a stop that nobody hears of", {"hint": 1, "stop": 1, "unheard": 1}, approval=True),
    Scenario("an approval and a command", {"hint": 1, "command": 1}, approval=True),
    Scenario("a long history and three hints", {"hint": 3}, spent=SPENT),
)
"""Six minutes of processor time: `make test-protocol ARGS=--short`, which is part of `.ci/run`."""

LONG: Final = (
    Scenario("an approval and a stop", {"hint": 2, "stop": 1}, approval=True),
    Scenario("a command and a stop", {"hint": 1, "command": 1, "stop": 1}),
    Scenario("a duplicate and a lost answer", {"hint": 2, "duplicate": 1, "lost": 1}),
    Scenario("a stop and a redrive", {"hint": 1, "stop": 1, "redrive": 1, "time": 1}),
    Scenario("two commands", {"hint": 1, "command": 2}),
    Scenario("a command and two hints", {"hint": 2, "command": 1}),
)
"""Twenty more minutes: `make test-protocol` explores these too."""


EVERY: Final = {one.name: one for one in (*SMALL, *FULL, *LONG)}


def explored(scenario: Scenario, most: int = 10_000_000) -> Explored:
    """Explore a scenario with the state machine as it is."""
    return Exploration(World(definition("reconcile"), scenario), most).run()
