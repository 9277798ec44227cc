"""A cluster and what happens on it, as data: made from a seed, cut down, kept in a file, played again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.cluster.kube import Object

LANE: Final = "zzlane"
"""Stands in every name for the word that tells this playing of the sequence from all others."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Somebody submits a workload."""

    workload: Object


@dataclass(frozen=True, slots=True)
class Apply:
    """An administrator changes a queue or a flavor."""

    manifest: Object


@dataclass(frozen=True, slots=True)
class Finish:
    """A workload that holds quota is done: the one at this place among them, by name, counted around."""

    pick: int


@dataclass(frozen=True, slots=True)
class Release:
    """The pods of a workload that was told to leave are gone: of the one at this place among them."""

    pick: int


@dataclass(frozen=True, slots=True)
class Delete:
    """Somebody deletes a workload, pending or running."""

    pick: int


@dataclass(frozen=True, slots=True)
class Reclaim:
    """One more pod of a workload that holds quota is done and not needed again."""

    pick: int


@dataclass(frozen=True, slots=True)
class Scale:
    """An elastic job that runs asks for so many pods more: a new slice is to take the place of the one that it has."""

    pick: int
    change: int


Step = Submit | Apply | Finish | Release | Delete | Reclaim | Scale
_STEPS: Final = {kind.__name__: kind for kind in (Submit, Apply, Finish, Release, Delete, Reclaim, Scale)}


@dataclass(frozen=True, slots=True)
class Sequence:
    """What is there at first, and the steps in order; `traits` names what the generator chose to include."""

    seed: int
    fair_sharing: bool
    traits: tuple[str, ...]
    objects: tuple[Object, ...] = field(repr=False)
    steps: tuple[Step, ...] = field(repr=False)

    def named(self, lane: str) -> Sequence:
        """Return the sequence with names of its own."""
        return read(json.dumps(written(self)).replace(LANE, lane))

    def with_steps(self, steps: tuple[Step, ...]) -> Sequence:
        """Return the same beginning with other steps."""
        return replace(self, steps=steps)


def written(played: Sequence) -> Object:
    """Return the sequence as plain data."""
    return {
        "seed": played.seed,
        "fair_sharing": played.fair_sharing,
        "traits": list(played.traits),
        "objects": list(played.objects),
        "steps": [{"do": type(step).__name__, **asdict(step)} for step in played.steps],
    }


def read(text: str) -> Sequence:
    """Read what `written` gave."""
    data: dict[str, Any] = json.loads(text)
    return Sequence(
        seed=data["seed"],
        fair_sharing=data["fair_sharing"],
        traits=tuple(data["traits"]),
        objects=tuple(data["objects"]),
        steps=tuple(_step(one) for one in data["steps"]),
    )


def _step(data: dict[str, Any]) -> Step:
    content = {name: value for name, value in data.items() if name != "do"}
    step: Step = _STEPS[data["do"]](**content)
    return step
