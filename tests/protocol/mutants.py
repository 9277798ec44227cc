"""The protocol with one condition taken away, or never met: each has to be missed by the explorer.

The state machine's conditions are found in its file: each part of a ConditionExpression on the state of the cluster,
and each rule of each Choice. Those of the functions and commands are lines of the product's own code.
"""

import __future__

import inspect
import json
import re
import textwrap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from unittest.mock import patch

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.lock import FREE_OR_EXPIRED, HELD
from taskgov.ports import Lock
from taskgov.services import receive_event
from taskgov.services.apply_change import ApplyChange
from taskgov.services.ended_owner import EndedOwner
from taskgov.services.read_snapshot import ReadSnapshot
from taskgov.services.receive_event import ReceiveEvent
from taskgov_cli import manual_lock
from tests.protocol.explore import Exploration, Explored
from tests.protocol.functions import forget
from tests.protocol.state import Scenario
from tests.protocol.table import SORT_KEY
from tests.protocol.world import World
from tests.statemachines import machines
from tests.statemachines.machines import definition

PART: Final = re.compile(r"attribute_(?:not_)?exists\(\w+\)|[\w#]+\s*(?:<>|<=|>=|=|<|>)\s*:\w+")
MET: Final = "({} OR attribute_exists(pk) OR attribute_not_exists(pk))"
NEVER_MET: Final = "({} AND attribute_exists(pk) AND attribute_not_exists(pk))"
"""A part of a condition that is always or never met. It keeps its values: DynamoDB refuses values without a use."""
Definition = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Mutant:
    """One condition that is changed: in the definition of the state machine, or in the code while it is explored."""

    name: str
    changes: Callable[[Definition], None] = lambda _: None
    within: Callable[[], AbstractContextManager[object]] = nullcontext
    versions: bool = True

    def explored(self, scenario: Scenario, most: int) -> Explored:
        """Explore a scenario with the condition changed."""
        machine = definition("reconcile")
        self.changes(machine)
        forget()
        try:
            with self.within():
                world = World(machine, scenario._replace(versions=self.versions))
                return Exploration(world, most).run()
        finally:
            forget()

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Change the condition for readers of the definition and callers of the code."""

        known = {name: definition(name) for name in ("reconcile", "audit")}
        self.changes(known["reconcile"])
        # Not the function: modules that imported it keep it as it was.
        with patch.object(machines, "written", lambda name: json.dumps(known[name])), self.within():
            yield


def together(one: Mutant, other: Mutant) -> Mutant:
    """Return both changes in one."""

    def changes(machine: Definition) -> None:
        one.changes(machine)
        other.changes(machine)

    @contextmanager
    def within() -> Iterator[None]:
        with one.within(), other.within():
            yield

    return Mutant(f"{one.name}; {other.name}", changes, within, one.versions and other.versions)


def mutant_of(name: str) -> Mutant:
    """Return the mutant of this name."""
    return next(one for one in every_mutant() if one.name == name)


def every_mutant() -> list[Mutant]:
    """Return all of them, those of the state machine in the order of its file."""
    return [*_of_conditions(), *_of_choices(), *_of_code()]


def _of_conditions() -> Iterator[Mutant]:
    for name, state in definition("reconcile")["States"].items():
        arguments = state.get("Arguments")
        if not isinstance(arguments, dict) or arguments.get("Key", {}).get("sk") != {"S": SORT_KEY}:
            continue
        condition = arguments.get("ConditionExpression", "")
        for number, part in enumerate(PART.finditer(condition), 1):
            for said, value in (("is always met", MET), ("is never met", NEVER_MET)):
                assert condition.count(part.group()) == 1
                yield Mutant(
                    f"{name}: {number}. {part.group()} {said}",
                    partial(_condition, name, part.group(), value.format(part.group())),
                )


def _condition(state: str, part: str, value: str, machine: Definition) -> None:
    arguments = machine["States"][state]["Arguments"]
    arguments["ConditionExpression"] = arguments["ConditionExpression"].replace(part, value)


PASSED_OVER: Final = frozenset(
    {
        "Changes left?",
        "Settled?",
        "Plan around it?",
    }
)
"""Choices of the way that writes go, wave by wave: neither the lock nor a hint depends on them."""


def _of_choices() -> Iterator[Mutant]:
    for name, state in definition("reconcile")["States"].items():
        if name in PASSED_OVER:
            continue
        for number, rule in enumerate(state.get("Choices", ()), 1):
            for said, value in (("always", "{% true %}"), ("never", "{% false %}")):
                yield Mutant(f"{name} {number}. to {rule['Next']!r} {said}", partial(_rule, name, number - 1, value))


def _rule(state: str, number: int, value: str, machine: Definition) -> None:
    machine["States"][state]["Choices"][number]["Condition"] = value


def _without(part: str) -> str:
    """Return code for the condition HELD with one part always met, in which another part can be changed too."""
    return f'HELD.replace("{part}", "{MET.format(part)}")'


ANY_OWNER: Final = HELD.replace("lockOwner = :me", MET.format("lockOwner = :me"))
ANY_TOKEN: Final = HELD.replace("fencingToken = :token", MET.format("fencingToken = :token"))
CODE: Final[tuple[tuple[Any, str, str, str, str], ...]] = (
    (Table, "hold_lock", r"\{HELD\}", ANY_OWNER, "does not compare the owner"),
    (Table, "hold_lock", r"\{HELD\}", ANY_TOKEN, "does not compare the token"),
    (Table, "hold_lock", "= RENEW", '= "SET lockExpires = lockExpires"', "does not extend the lease"),
    (Table, "hold_lock", r" AND \{UNLESS_ENDED\}", "", "extends a lease that was ended"),
    (Table, "_add_one", '":one": 1', '":one": 0', "leaves the generation as it is"),
    (Table, "end_lease", "HELD", f'"{ANY_TOKEN}"', "does not compare the token"),
    (Table, "end_lease", "HELD", f'"{ANY_OWNER}"', "does not compare the owner"),
    (Lock, "is_held", r"self\.expires > now\.timestamp\(\)", "True", "takes an expired lock for a lock"),
    (Lock, "is_held", r"self\.expires > now\.timestamp\(\)", "False", "sees no lock"),
    (ReceiveEvent, "_mark", r"if not self\._owners.*", "if True:", "never starts a run"),
    (ReceiveEvent, "_mark", r"if not self\._owners.*", "if False:", "always starts a run"),
    (
        ReceiveEvent,
        "_left_without_a_run",
        r"not execution\.was_broken_off",
        "True",
        "starts no run after one without a lock",
    ),
    (EndedOwner, "of_hint", "not execution.is_over", "False", "takes a run that lives for one that is over"),
    (EndedOwner, "of_hint", r"not lock\.looks_old\(now\)", "True", "asks about no owner"),
    (EndedOwner, "of_hint", r"lock\.asked_by is not None", "False", "leaves the request of a run that is over"),
    (EndedOwner, "of_execution", "lock.owner == execution.arn", "False", "leaves the lock of a run that is over"),
    (EndedOwner, "of_execution", "lock.asked_by == execution.arn", "False", "leaves the request of a run that is over"),
    (ApplyChange, "write", r"self\._hold\(request\)", "pass", "does not ask for the lock"),
    (ApplyChange, "restore", r"self\._hold\(request\)", "pass", "does not ask for the lock"),
    (
        ReadSnapshot,
        "_read",
        r"( +generation = .*\n)((?:.*\n)+?)( +snapshot = .*\n)",
        r"\2\3\1",
        "reads the generation last",
    ),
    (manual_lock, "_release", "HELD", _without("lockOwner = :me"), "does not compare the owner"),
    (manual_lock, "_release", "HELD", _without("fencingToken = :token"), "does not compare the token"),
    (manual_lock, "locked", r"request_run\(.*\)", "pass", "asks for no run"),
)
"""Of whom the code is, which function, what of its text (a pattern) becomes what, and what that means."""


def _of_code() -> Iterator[Mutant]:
    for owner, name, before, after, said in CODE:
        yield Mutant(
            f"{owner.__name__.split('.')[-1]}.{name} {said}", within=partial(_code, owner, name, before, after)
        )
    named = receive_event.execution_name
    unnumbered = patch.object(receive_event, "execution_name", lambda cluster, _, cause: named(cluster, 0, cause))
    yield Mutant("execution_name: not of the generation", within=lambda: unnumbered)
    for part in PART.findall(FREE_OR_EXPIRED):
        for said, value in (("is always met", MET), ("is never met", NEVER_MET)):
            condition = FREE_OR_EXPIRED.replace(part, value.format(part))
            changed = patch.object(manual_lock, "FREE_OR_EXPIRED", condition)
            yield Mutant(f"manual_lock: taking, {part} {said}", within=partial(_given, changed))
    yield Mutant("SageMaker: takes a write at any version", versions=False)


def _given(changed: AbstractContextManager[object]) -> AbstractContextManager[object]:
    return changed


@contextmanager
def _code(owner: Any, name: str, before: str, after: str) -> Iterator[None]:
    """Run with one function's text changed."""
    own = getattr(owner, name)
    source = getattr(own, "changed_to", None) or textwrap.dedent(inspect.getsource(own))
    changed = re.sub(before, after, source, count=1)
    assert changed != source, f"{owner.__name__}.{name} has no {before!r} any more: say what is to be changed instead"
    made: dict[str, Any] = {}
    module = inspect.getmodule(own)
    # With the module's own names, so that what a test puts in their place is used.
    code = compile(changed, f"<{name}, changed>", "exec", flags=__future__.annotations.compiler_flag)
    exec(code, vars(module), made)  # noqa: S102 the product's own text
    made[name].changed_to = changed  # for another change of the same function
    with patch.object(owner, name, made[name]):
        yield
