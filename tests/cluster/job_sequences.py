"""Random clusters and what happens on them: teams with quotas as HyperPod makes them, jobs, completions, quota edits.

Everything comes from a seed, so that a difference can be played again.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.cluster.workbench import TABLE, a_policy, a_quota

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig

TYPES: Final = ("ml.g5.8xlarge", "ml.g5.12xlarge", "ml.g5.48xlarge")
CLASSES: Final[Mapping[str, int]] = {"inference": 90, "training": 70, "batch": 10}


@dataclass(frozen=True, slots=True)
class Submit:
    """Somebody submits a job."""

    team: str
    name: str
    pods: int
    requests: Mapping[str, str | int]
    priority: str


@dataclass(frozen=True, slots=True)
class Complete:
    """The job that has run longest (by name, of those that run) is done."""

    pick: int


@dataclass(frozen=True, slots=True)
class Edit:
    """An administrator changes a quota."""

    quota: ComputeQuota


Step = Submit | Complete | Edit


@dataclass(frozen=True, slots=True)
class Sequence:
    """A cluster, and what happens on it in order."""

    seed: int
    policy: SchedulerConfig
    quotas: tuple[ComputeQuota, ...]
    steps: tuple[Step, ...] = field(repr=False)


def sequence(seed: int, *, fair_share: bool, length: int = 14) -> Sequence:
    """Return the sequence of a seed."""
    chance = random.Random(seed)  # noqa: S311 - reproducible, not secret
    types = chance.sample(TYPES, chance.randint(1, 2))
    teams = [f"team-{letter}" for letter in "abcd"[: chance.randint(2, 4)]]
    quotas = {team: _quota(chance, team, types) for team in teams}
    steps: list[Step] = []
    for number in range(length):
        roll = chance.random()
        if roll < 0.1:
            team = chance.choice(teams)
            quotas_edited = _quota(chance, team, types)
            steps.append(Edit(quotas_edited))
        elif roll < 0.2 and number > 4:
            steps.append(Complete(chance.randrange(100)))
        else:
            steps.append(_submit(chance, number, teams, types))
    policy = a_policy("Enabled" if fair_share else "Disabled", **CLASSES)
    return Sequence(seed, policy, tuple(quotas.values()), tuple(steps))


def _quota(chance: random.Random, team: str, types: list[str]) -> ComputeQuota:
    named = types if chance.random() < 0.7 else types[:1]
    strategy = chance.choices(["LendAndBorrow", "Lend", "DontLend"], [8, 1, 1])[0]
    return a_quota(
        team,
        [{"InstanceType": name, "Count": chance.randint(0 if index else 1, 2)} for index, name in enumerate(named)],
        strategy=strategy,
        borrow_limit=chance.choice([0, 50, 100, 200, 300]) if strategy == "LendAndBorrow" else None,
        weight=chance.choice([0, 1, 10, 50, 100]),
        preempt=chance.choice(["LowerPriority", "LowerPriority", "Never"]),
    )


def _submit(chance: random.Random, number: int, teams: list[str], types: list[str]) -> Submit:
    """Ask for whole instances or for parts of them; sometimes for processors only."""
    resources = TABLE.resources_of(chance.choice(types))
    assert resources is not None
    gpus = chance.choice([resources.gpu, resources.gpu, resources.gpu, max(1, resources.gpu // 2), 0])
    requests: dict[str, str | int] = {"cpu": chance.choice([1, 4, resources.vcpu // 2])}
    if gpus:
        requests["nvidia.com/gpu"] = gpus
    return Submit(
        chance.choice(teams), f"job-{number:02}", chance.choice([1, 1, 2, 2, 3]), requests, chance.choice([*CLASSES])
    )
