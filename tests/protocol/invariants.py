"""What must hold, judged by the item's values alone: no condition of the product is asked here."""

import json
from collections.abc import Container, Mapping
from typing import Any, NamedTuple

from taskgov.ports import LOCK_SECONDS
from tests.protocol.functions import COMMANDS, EPOCH
from tests.protocol.machine import Standing
from tests.protocol.state import Process, State
from tests.protocol.table import number, plain
from tests.statemachines.machines import SUBSTITUTIONS

QUESTION = int(SUBSTITUTIONS["ApprovalHours"]) * 1800
"""Seconds that a question stands: half of the hours, before the reminder and after it."""


RESTORED = "restore"
FAULTS = (
    *("stop", "fail", "time", "lost", "crash", "twice", "kill", "unheard", "old", "expire", "redrive", "unreadable"),
    RESTORED,
)
"""What may happen in a scenario that is a fault; the rest is what people and the world do."""


class Writer(NamedTuple):
    """Who writes: under whose lock, with which token, and when that was last asked."""

    owner: str
    token: int
    asked_at: int | None


def owner_of(item: str) -> str | None:
    """Return who has the lock, whether its lease has run out or not."""
    owner = plain(item).get("lockOwner")
    return None if owner is None else str(owner)


def expires(item: str) -> int:
    """Return when the lease runs out, on the model's clock."""
    return number(item, "lockExpires") - int(EPOCH.timestamp())


def broken_by_update(
    before: str, after: str, actor: str, now: int, *, over: frozenset[str] = frozenset()
) -> str | None:
    """Say what is wrong with a change of the lock by `actor`, who was told which executions are over."""
    holder, follower = owner_of(before), owner_of(after)
    others = holder is not None and holder != actor
    runs = holder is not None and expires(before) >= now
    broken = {
        f"{actor} releases the lock of {holder}": others and follower is None,
        f"{actor} takes the lock of {holder}, whose lease still runs": others
        and runs
        and follower not in {None, holder},
        f"{follower} takes the lock with a token that was given before": follower not in {None, holder}
        and number(after, "fencingToken") <= number(before, "fencingToken"),
        f"{actor} changes the lease of {holder}": others
        and holder == follower
        and not (expires(after) < expires(before) and (holder in over or not runs))
        and expires(before) != expires(after),
        f"the lock of {follower} would outlive it by {expires(after) - now} s": follower is not None
        and expires(after) - now > LOCK_SECONDS,
        f"{follower} has the lock, and its own question stands": follower is not None
        and follower == plain(after).get("askedBy"),
        "the generation falls": number(after, "generation") < number(before, "generation"),
    }
    return next((sentence for sentence, is_so in broken.items() if is_so), None)


def writer(process: Process) -> Writer:
    """Return under which lock a function or command writes."""
    payload, running = json.loads(process.running.payload), process.running
    times = [running.started, *(answer.at for answer in running.answers)]
    asked = [number for number, answer in enumerate(running.answers) if {"item", "met"} & set(json.loads(answer.body))]
    # The clock was read before the lock was asked for, and the lease is counted from there.
    at = times[asked[-1]] if asked else None
    if running.kind in COMMANDS:
        token = json.loads(running.answers[asked[0]].body)["item"].get("fencingToken", 0)
        if running.kind == "rollback" and len(asked) == 1:
            at = None  # it took the lock, and did not ask again before it read the version at which it writes
        return Writer(payload["owner"], token, at)
    return Writer(payload["lockOwner"], payload["fencingToken"], at)


def broken_by_write(state: State, process: Process, version: int) -> str | None:
    """Say what is wrong with a write that the API takes."""
    if version != state.version:
        return f"a write overwrites version {state.version}, having seen version {version}"
    who, holder = writer(process), (owner_of(state.item), number(state.item, "fencingToken"))
    if holder == (who.owner, who.token):
        return None
    # Late after it had asked: the version is what the write is held against. So it is when nobody waits any more for
    # the function, because Step Functions gave it up or the execution was stopped, which frees the lock.
    # And when its execution was stopped and is redriven: its lease may be ended after that, by the event of the stop.
    # And when the table was restored: it has forgotten whose lock it was.
    redriven, restored = (dict(state.left).get(name) == 0 for name in ("redrive", RESTORED))
    if who.asked_at is not None and (state.now > who.asked_at or process.orphan or redriven or restored):
        return None
    return (
        f"two writers: {who.owner} with token {who.token} writes under the lock of {holder[0]} with token {holder[1]}"
    )


def broken_by_check(item: str, process: Process) -> str | None:
    """Say what is wrong when the product lets a function go on under this item."""
    payload = json.loads(process.running.payload)
    if "fencingToken" not in payload or owner_of(item) is None:
        return None
    if (owner_of(item), number(item, "fencingToken")) == (payload["lockOwner"], payload["fencingToken"]):
        return None
    return (
        f"{payload['lockOwner']} passes the check with token {payload['fencingToken']}, which is not that of the lock"
    )


def broken_by_approval(process: Process, changes: str, approved: Container[str]) -> str | None:
    """Say what is wrong with a write, where a person has to agree to every change that a run makes."""
    if process.running.kind in COMMANDS or changes in approved:
        return None
    return f"{process.parent} writes {changes}, and nobody has approved it"


def broken_by_taking(state: State, possible: Mapping[str, int]) -> str | None:
    """Say what is wrong when the lock is taken again and again: what can happen calls for so many runs at most."""
    taken, most = number(state.item, "fencingToken"), 3 * (2 + sum(possible.values()))
    return f"the lock is taken for the {taken}th time, and there is no end to it" if taken > most else None


def broken_by_keeping(item: str, at: Standing, arn: str) -> str | None:
    """Say what is wrong when the product does not let an execution let go of its lock."""
    if at.state not in {"Release the lock", "Let go of the lock"}:
        return None
    holder, seen = owner_of(item), json.loads(at.variables).get("generation")
    if holder == arn and (at.state == "Let go of the lock" or seen == number(item, "generation")):
        return f"{arn} has to keep its lock, and there is nothing that it has not seen"
    return f"{arn} is to begin anew, and its lock was released" if holder is None and at.state[0] == "R" else None


def broken_by_refusal(state: State, process: Process) -> str | None:
    """Say what is wrong when the product refuses a command its lock: that of another has to be held."""
    holder = owner_of(state.item)
    if process.running.kind not in COMMANDS or process.running.answers:
        return None
    if holder is not None and expires(state.item) >= state.now and holder not in process.running.payload:
        return None
    return f"a command is refused, and the lock is {'free' if holder is None else 'left over from ' + holder}"


def broken_at_rest(state: State, asked_for: str) -> str | None:
    """Say what is wrong when all is quiet and nothing happened that only the next resync repairs.

    `asked_for` is the digest of the changes that the cluster needs now.
    """
    if owner_of(state.item) is not None:
        return f"the lock is left with {owner_of(state.item)}"
    generation, waiting = number(state.item, "generation"), _waiting(state)
    seen = max([state.seen, *(one["generation"] for one in waiting)])
    # An exchanged table counts from the beginning.
    if seen < generation or (seen > generation and dict(state.left).get(RESTORED) != 0):
        return f"a lost hint: the generation is {generation}, and the last run saw {seen}"
    if state.content == state.facts or asked_for in state.rejected:
        return None
    if any(one["changesSha256"] == asked_for for one in waiting):
        return None
    return f"the quota holds {state.content} and should hold {state.facts}"


def broken_by_asking(state: State, waiting: list[Standing], possible: Mapping[str, int], nothing: str) -> str | None:
    """Say what is wrong when people are asked for the same changes twice while the first question stands.

    Or for `nothing`, the digest of no change; or for what they have answered, without any fault in between.
    """
    digests = [json.loads(at.variables)["changesSha256"] for at in waiting if state.now - at.entered <= QUESTION]
    as_it_was = all(possible.get(name, 0) == count for name, count in state.left if name in FAULTS)
    broken = {
        "the same changes are asked for twice": len(set(digests)) < len(digests),
        "what was approved is asked for again": as_it_was and bool(set(digests) & set(state.approved)),
        "what was rejected is asked for again": as_it_was and bool(set(digests) & set(state.rejected)),
        "a person is asked, and there is no change to agree to": nothing in digests,
    }
    return next((sentence for sentence, is_so in broken.items() if is_so), None)


def _waiting(state: State) -> list[dict[str, Any]]:
    """Return the variables of the executions that have looked, and wait for a person now."""
    running = (one.at for one in state.executions if one.status == "running" and one.at)
    return [json.loads(at.variables) for at in running]
