"""Does the explorer miss each condition? Where it does not, the condition is listed here with the reason."""

from typing import Final

from tests.protocol.explore import Explored
from tests.protocol.mutants import Mutant, every_mutant
from tests.protocol.scenarios import SMALL
from tests.protocol.state import Scenario

MOST: Final = 6_000
"""States to which one scenario is explored for one mutant: what is wrong is near the start."""

RUNS: Final = (
    *(one for one in SMALL if not one.approval and "command" not in one.left),
    Scenario("a duplicate", {"hint": 1, "duplicate": 1}),
    Scenario("a step that fails", {"hint": 2, "fail": 1}),
    Scenario("a delay", {"hint": 2, "time": 1}),
    Scenario("a function that is called twice", {"hint": 2, "twice": 1}),
    Scenario("a stop and a redrive", {"hint": 1, "stop": 1, "redrive": 1, "time": 1}),
)
COMMANDS: Final = (
    *(one for one in SMALL if "command" in one.left),
    Scenario("a command and a lost answer", {"hint": 1, "command": 1, "lost": 1}),
    Scenario("two commands and a delay", {"command": 2, "time": 1}),
    Scenario("a lock without an end, and a command", {"command": 1}, item={"lockOwner": {"S": "nobody"}}),
    Scenario("a command that is killed", {"hint": 1, "command": 1, "kill": 1}),
)
APPROVALS: Final = (
    *(one for one in SMALL if one.approval),
    Scenario("two approvals", {"hint": 2}, approval=True),
    Scenario("an approval and a lost answer", {"hint": 1, "lost": 1}, approval=True),
    Scenario("an approval and a duplicate", {"hint": 1, "duplicate": 1}, approval=True),
    Scenario("an approval that expires", {"hint": 1, "expire": 2}, approval=True),
    Scenario("an approval and a delay", {"hint": 1, "time": 1, "duplicate": 1}, approval=True),
)
ABOUT_APPROVALS: Final = (
    "Set the lock aside",
    "Is the request kept?",
    "Forget the request",
    "Remind or let it expire",
    "Approved?",
    "Approval in hand?",
    "Choose by outcome 2.",
    "Choose by outcome 3.",
)


def hunted(mutant: Mutant) -> Explored | None:
    """Return what the explorer finds wrong with a mutant, in the first scenario that shows it; None: nothing."""
    for scenario in scenarios_for(mutant):
        found = mutant.explored(scenario, MOST)
        if found.wrong is not None:
            return found
    return None


def hunted_by_name(name: str) -> Explored | None:
    """Hunt the mutant of this name: what a process of its own is given."""
    return hunted(next(one for one in every_mutant() if one.name == name))


def scenarios_for(mutant: Mutant) -> tuple[Scenario, ...]:
    """Return the scenarios in which a mutant would show."""
    if mutant.name.startswith("manual_lock"):
        return COMMANDS
    if mutant.name.startswith("Lock."):
        return COMMANDS[::-1]  # a lease that nobody else ends is that of a command that was killed
    return APPROVALS if mutant.name.startswith(ABOUT_APPROVALS) else RUNS
