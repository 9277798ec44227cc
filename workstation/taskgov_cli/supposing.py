"""What the options of `taskgov what-if` suppose: read all of them, and name everything that is wrong at once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from taskgov.hyperpod.limits import WEIGHT
from taskgov.hyperpod.names import namespace_of, team_of_namespace
from taskgov_explain.find import nearest
from taskgov_explain.quota_settings import COUNT, QuotaSetting, part_named
from taskgov_explain.suppose import Hypothesis, node_problems, setting_problems, teams_of
from taskgov_manifests.workloads import workloads_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from taskgov.snapshot.model import KubernetesObject, Snapshot

_NODES: Final = re.compile(r"(\d+)x(.+)")
_SETTING: Final = re.compile(r"([^.=:]+)\.([^=:]+)(?::([^=]*))?=(.*)")
_WEIGHT: Final = re.compile(r"([^=]+)=(\d+)")
_NUMBER: Final = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?")

PARTS_TOLD: Final = (
    "accelerators, vcpu, memoryInGiB or a MIG profile such as mig-1g.10gb; without a part, whole instances"
)


@dataclass(frozen=True, slots=True)
class Typed:
    """The values of the repeated options, as they were typed."""

    lose_nodes: list[str]
    add_nodes: list[str]
    settings: list[str]
    weights: list[str]


def hypothesis(snapshot: Snapshot, typed: Typed, work: Iterable[KubernetesObject] = ()) -> Hypothesis:
    """Return what is supposed of a cluster. Raises `ValueError` that names every value that breaks a rule, by lines."""
    problems: list[str] = []
    lost = _nodes("--lose-nodes", typed.lose_nodes, problems)
    added = _nodes("--add-nodes", typed.add_nodes, problems)
    problems += [f"--lose-nodes: {problem}" for problem in node_problems(snapshot.nodes, lost)]
    quotas = _settings(snapshot, typed.settings, problems)
    weights = _weights(snapshot, typed.weights, problems)
    if problems:
        raise ValueError("\n".join(problems))
    return Hypothesis(lost, added, quotas, weights, tuple(work))


def _nodes(option: str, values: Iterable[str], problems: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for value in values:
        if (found := _NODES.fullmatch(value)) is None:
            problems.append(f"{option} {value!r} is not of the form 4xml.p5.48xlarge")
        else:
            counts[found[2]] = counts.get(found[2], 0) + int(found[1])
    return counts


def _settings(snapshot: Snapshot, values: Iterable[str], problems: list[str]) -> tuple[QuotaSetting, ...]:
    read: list[tuple[str, QuotaSetting]] = []
    for value in values:
        if (found := _SETTING.fullmatch(value)) is None:
            forms = "team-a.ml.p5.48xlarge=6 or team-a.ml.p5.48xlarge:accelerators=2"
            problems.append(f"--set {value!r} is not of the form {forms}")
            continue
        team, instance_type, given, number = found.groups()
        part = COUNT if given is None else part_named(given)
        if part is None:
            problems.append(f"--set {value!r}: {given!r} is none of {PARTS_TOLD}")
        if _NUMBER.fullmatch(number) is None:
            problems.append(f"--set {value!r}: {number!r} is not a number such as 6")
        elif part is not None:
            read.append((value, QuotaSetting(team, instance_type, float(number), part)))
    settings = tuple(setting for _, setting in read)
    typed = {id(setting): value for value, setting in read}
    problems += [f"--set {typed[id(problem)]!r}: {rule}" for problem, rule in setting_problems(snapshot, settings)]
    return settings


def _weights(snapshot: Snapshot, values: Iterable[str], problems: list[str]) -> dict[str, int]:
    weights: dict[str, int] = {}
    for value in values:
        if (found := _WEIGHT.fullmatch(value)) is None:
            problems.append(f"--weight {value!r} is not of the form team-b=50")
            continue
        team, weight = found[1], int(found[2])
        if team not in (known := teams_of(snapshot)):
            problems.append(f"--weight {value!r}: there is no team named {team}; {nearest(team, known)}")
        if (rule := WEIGHT.broken_rule(weight)) is not None:
            problems.append(f"--weight {value!r}: {rule}")
        weights[team] = weight
    return weights


def submitted(files: list[Path], snapshot: Snapshot, team: str | None) -> tuple[KubernetesObject, ...]:
    """Return the workloads of the manifests in these files. Raises `ValueError` that names all that cannot be used."""
    if team is not None and team not in (known := teams_of(snapshot)):
        raise ValueError(f"--as {team!r}: there is no team named {team}; {nearest(team, known)}")
    if team is not None and not files:
        raise ValueError(f"--as {team}: nothing is submitted; --submit FILE names the job")
    manifests = [manifest for file in files for manifest in _manifests(file)]
    work = workloads_of(manifests, snapshot, team) if files else ()
    if lost := sorted({item["metadata"]["namespace"] for item in work} - _namespaces_of(snapshot)):
        teams = teams_of(snapshot)
        raise ValueError(
            "\n".join(f"namespace {name} has no LocalQueue: {nearest(_team(name), teams)} (--as TEAM)" for name in lost)
        )
    return work


def _namespaces_of(snapshot: Snapshot) -> set[str]:
    """Return the namespaces in which a job is queued: those of teams, and those with a LocalQueue."""
    with_queues = {str(queue["metadata"].get("namespace")) for queue in snapshot.kueue.local_queues}
    return with_queues | set(map(namespace_of, teams_of(snapshot)))


def _team(namespace: str) -> str:
    return team_of_namespace(namespace) or namespace


def _manifests(file: Path) -> list[dict[str, Any]]:
    try:
        found = [manifest for manifest in yaml.safe_load_all(file.read_bytes().decode()) if manifest]
    except UnicodeDecodeError as error:
        raise ValueError(f"{file}: a manifest must be UTF-8 text, and byte {error.start} is not") from error
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"{file} is not YAML: {error}") from error
    if not found or not all(isinstance(manifest, dict) for manifest in found):
        raise ValueError(f"{file} has no manifest")
    return found
