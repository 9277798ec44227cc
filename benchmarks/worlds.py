"""Write random worlds to prove plans on: `python -m benchmarks.worlds --seed S --count N OUT`.

A world is a snapshot as `taskgov snapshot` writes it, with the policy document inside. Its file is named
`<family>-<seed>-<number>.json`.
The same seed gives the same bytes. `python -m tests.prove OUT` proves the plans of a folder of them.

| family | what it is about |
| --- | --- |
| `converge` | a cluster at rest, then another document: promises in parts, tiers, with and without a pool |
| `path` | jobs at work while quotas, weights and nodes change |
| `squeeze` | promises in parts that give and take at once, under running work that borrows |
| `mixed` | everything at once: MIG, several types, leases, budgets, demand, edits by hand, jobs |
| `recover` | quotas and cluster policies that failed |
| `limits` | guardrails of every kind, and the history that they read |
| `drift` | queues that are not as their quotas say: updates that failed, queues edited by hand or put on hold |
| `doubles` | second quotas of teams, quotas of one name, failed creations and unsettled writes, under limits |
| `portions` | shares and leases in every unit, to and from the pool, on types without nodes, and given in part |
| `machines` | unknown types, basis allocatable, one thread per core, over-commitment, headroom, sick nodes |
| `refused` | runs that were broken off because writes were refused, with leases, demand, limits and failed quotas |
"""

import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.worlds_cluster import ARN, NOW, Machines, draw_machines
from benchmarks.worlds_document import draw_document
from benchmarks.worlds_draw import FAMILIES, Draw
from benchmarks.worlds_past import draw_past
from benchmarks.worlds_quotas import Standing, draw_quotas
from benchmarks.worlds_refused import with_refusals
from benchmarks.worlds_work import draw_work
from taskgov.policy.document import PolicyDocument
from taskgov.policy.parse import parse_policy
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import ClusterFacts, Snapshot

TRIES = 200


def world(family: str, seed: int, number: int) -> Snapshot:
    """Return one world; the same arguments give the same world."""
    draw = Draw(f"{family}-{seed}-{number}", FAMILIES[family])
    machines = draw_machines(draw)
    standing = draw_quotas(draw, machines)
    document = _document(draw, machines, standing)
    standing, past = draw_past(draw, standing, document)
    snapshot = Snapshot(
        cluster=ClusterFacts(
            name="ml-cluster",
            arn=ARN,
            memory_reserved_percent=machines.memory_reserved_percent,
            instance_groups=machines.groups,
        ),
        taken_at=NOW,
        nodes=machines.nodes,
        quotas=standing.quotas,
        scheduler_config=standing.scheduler,
        policy=document,
        policy_version="v2",
        applied=past.applied,
        edits=past.edits,
        stopped=past.stopped,
        observed_use=past.observed_use,
        budget_use=past.budget_use,
    )
    return with_refusals(draw, replace(snapshot, kueue=draw_work(draw, machines, standing)))


def _document(draw: Draw, machines: Machines, standing: Standing) -> PolicyDocument:
    """Draw documents until one keeps the rules."""
    for _ in range(TRIES):
        document = parse_policy(draw_document(draw, machines, standing)).document
        if document is not None:
            return document
    raise RuntimeError(f"none of {TRIES} documents keeps the rules")


def write_worlds(folder: Path, seed: int, count: int) -> list[Path]:
    """Write `count` worlds, the families in turn, and return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    names = list(FAMILIES)
    files = []
    for number in range(count):
        family = names[number % len(names)]
        path = folder / f"{family}-{seed}-{number:04}.json"
        path.write_bytes(snapshot_to_json(world(family, seed, number)))
        files.append(path)
    return files


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line and write the worlds."""
    parser = ArgumentParser(prog="python -m benchmarks.worlds", description="Write random worlds to prove plans on.")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("folder", type=Path, metavar="OUT")
    given = parser.parse_args(arguments)
    files = write_worlds(given.folder, given.seed, given.count)
    sys.stdout.write(f"{len(files)} worlds in {given.folder}\n")


if __name__ == "__main__":
    main()
