"""A cluster of any size, as the raw answers of its APIs: `write_world` puts them into a folder.

Full size is 1,000 teams, 20 instance types, 10,000 nodes, 50,000 workloads (half of them waiting) and 15 rows a team;
every quota is to change. The cluster is at rest: half of the teams borrow what the other half leaves idle, up to their
limits, and nothing that waits would start or preempt before a quota changes. Queues are deep and have few shapes of
jobs. Who starts and who is preempted by a plan depends on the order of its writes.

With `one_shape` nobody borrows yet, and all that waits in a queue is alike: a team's jobs start on what it is given and
may borrow, which is enough for all, so that every order of writes ends in the same way.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Final

from benchmarks.scale.objects import TYPES, by_queue, job, node, rendered_objects
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota

PAGE: Final = 500
"""Objects on a page of the Kubernetes API, as the product asks for them."""
SAGEMAKER_PAGE: Final = 100
ROWS: Final = 15
JOBS: Final = 50
CHANGED: Final = 100
"""Workloads that change in the minute that is followed, whatever the size."""
VERSION: Final = "1000"
VERSION_AFTER: Final = "2000"
"""The resource versions of lists, and of the workloads a minute later."""
WATCHED: Final = "workloads.watch"
NAME: Final = "ml-cluster"
ARN: Final = "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"
EKS_ARN: Final = "arn:aws:eks:us-east-1:111122223333:cluster/ml-eks"
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """How large a world is."""

    teams: int

    @property
    def nodes(self) -> int:
        """Ten for each team."""
        return 10 * self.teams

    @property
    def workloads(self) -> int:
        """Fifty for each team, half of them waiting."""
        return JOBS * self.teams


def sizes(scale: float) -> tuple[Size, ...]:
    """Return the sizes to measure: the largest, and three times half of it.

    Example:
        >>> [size.teams for size in sizes(0.1)]
        [12, 25, 50, 100]

    """
    largest = round(1000 * scale)
    return tuple(Size(max(largest // part, 2)) for part in (8, 4, 2, 1))


def write_world(folder: Path, size: Size, *, one_shape: bool = False) -> None:
    """Write every answer of the cluster's APIs, a file for each page, and the policy document."""
    jobs = partial(_jobs, size.teams, one_shape=one_shape)
    quotas = [_quota(number) for number in range(size.teams)]
    table = InstanceTypeTable()
    models = [ComputeQuota.model_validate(quota) for quota in quotas]
    objects = rendered_objects(models, by_queue(jobs()), table)
    _pages(folder, "nodes", map(node, range(size.nodes)), PAGE, "items")
    for plural, items in objects.items():
        _pages(folder, plural, items, PAGE, "items")
    _pages(folder, "workloads", jobs(), PAGE, "items")
    _pages(folder, "ListComputeQuotas", quotas, SAGEMAKER_PAGE, "ComputeQuotaSummaries")
    _pages(folder, "ListClusterNodes", map(_machine, range(size.nodes)), SAGEMAKER_PAGE, "ClusterNodeSummaries")
    _pages(folder, "ListClusterSchedulerConfigs", [_POLICY], SAGEMAKER_PAGE, "ClusterSchedulerConfigSummaries")
    _put(folder, "DescribeClusterSchedulerConfig-0", _POLICY)
    _put(folder, "DescribeCluster-0", _CLUSTER)
    _put(folder, "ListClusters-0", {"ClusterSummaries": [_CLUSTER]})
    _put(folder, "ListTags-0", {"Tags": []})
    (folder / "policy.yaml").write_text(_document(size.teams))
    (folder / WATCHED).write_bytes(b"".join(_changes(jobs())))


def rows_today(number: int) -> Iterator[Item]:
    """Give what a team has: a third of its rows are whole instances, the others parts."""
    for place in range(ROWS):
        yield {"InstanceType": _type(number, place), **_AMOUNTS[place % 3]}


def rows_promised(number: int) -> Iterator[Item]:
    """Give what a team is promised: whole instances of other types."""
    for place in range(ROWS):
        yield {"InstanceType": _type(number, place), **_AMOUNTS[(1, 0, 2)[place % 3]]}


_AMOUNTS: Final = ({"Count": 1}, {"VCpu": 2, "MemoryInGiB": 8}, {"VCpu": 1, "MemoryInGiB": 4})
_POLICY: Final = {
    "ClusterSchedulerConfigId": "scheduler001",
    "ClusterSchedulerConfigArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster-scheduler-config/scheduler001",
    "Name": "ml-cluster-policy",
    "ClusterSchedulerConfigVersion": 1,
    "ClusterArn": ARN,
    "Status": "Created",
    "CreationTime": 1_762_000_000,
    "SchedulerConfig": {"FairShare": "Enabled"},
}
_CLUSTER: Final = {
    "ClusterName": NAME,
    "ClusterArn": ARN,
    "ClusterStatus": "InService",
    "CreationTime": 1_762_000_000,
    "NodeRecovery": "Automatic",
    "Orchestrator": {"Eks": {"ClusterArn": EKS_ARN}},
    "InstanceGroups": [],
}


def _type(number: int, place: int) -> str:
    return TYPES[(number + place) % len(TYPES)]


def _quota(number: int) -> Item:
    return {
        "ComputeQuotaArn": f"arn:aws:sagemaker:us-east-1:111122223333:compute-quota/quota{number:07}",
        "ComputeQuotaId": f"quota{number:07}",
        "Name": f"team-{number}-quota",
        "ComputeQuotaVersion": 1,
        "Status": "Created",
        "ClusterArn": ARN,
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": list(rows_today(number)),
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
            "PreemptTeamTasks": "LowerPriority",
        },
        "ComputeQuotaTarget": {"TeamName": f"team-{number}", "FairShareWeight": 10},
        "ActivationState": "Enabled",
        "CreationTime": 1_762_000_000,
    }


def _borrows(number: int, place: int) -> bool:
    """Say whether a team borrows an instance of a type: every second one of those that have it, the later of two."""
    return ((number + place) // len(TYPES) + place // 3) % 2 == 1


def _held(number: int) -> dict[str, int]:
    """Return the whole instances of each type that a team's work holds: two where it borrows, else none."""
    return {_type(number, place): 2 for place in range(0, ROWS, 3) if _borrows(number, place)}


def _jobs(teams: int, *, one_shape: bool) -> Iterator[Item]:
    for number in range(teams):
        team, held = f"team-{number}", {} if one_shape else _held(number)
        running = [instance_type for instance_type, count in held.items() for _ in range(count)]
        for index, instance_type in enumerate(running):
            yield job(team, index, instance_type, whole=1, admitted=True)
        for index in range(len(running), JOBS // 2):
            yield job(team, index, _type(number, 1 + 3 * (index % 5)), whole=0, admitted=True)
        for index in range(JOBS // 2, JOBS):
            place = index % 5 * 3
            if one_shape:
                yield job(team, index, _type(number, 1), whole=1, admitted=False)
            elif index % 2:
                # Whole instances of a type that the team will have, and has not yet.
                yield job(team, index, _type(number, place + 1), whole=1, admitted=False)
            else:
                # One more than it may borrow, or more than it could ever have.
                wanted = 1 if _type(number, place) in held else 3
                yield job(team, index, _type(number, place), whole=wanted, admitted=False)


def _changes(jobs: Iterator[Item]) -> Iterator[bytes]:
    """Give what a watch tells of a minute in which some workloads changed, and the bookmark after it."""
    for number, item in enumerate(islice(jobs, CHANGED), int(VERSION) + 1):
        yield _event("MODIFIED", {**item, "metadata": {**item["metadata"], "resourceVersion": str(number)}})
    yield _event("BOOKMARK", {"metadata": {"resourceVersion": VERSION_AFTER}})


def _event(kind: str, item: Item) -> bytes:
    return json.dumps({"type": kind, "object": item}, separators=(",", ":")).encode() + b"\n"


def _machine(number: int) -> Item:
    return {
        "InstanceGroupName": f"group-{number % len(TYPES)}",
        "InstanceId": f"i-{number:017x}",
        "InstanceType": TYPES[number % len(TYPES)],
        "LaunchTime": 1_762_000_000,
        "InstanceStatus": {"Status": "Running"},
    }


def _document(teams: int) -> str:
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": NAME, "arn": ARN},
        "teams": [
            {
                "name": f"team-{number}",
                "fairShareWeight": 10,
                "quota": {"ComputeQuotaResources": list(rows_promised(number))},
            }
            for number in range(teams)
        ],
    }
    return "".join(_yaml(document, 0))


def _yaml(value: Any, depth: int) -> Iterator[str]:
    """Write a document as people do, in block style."""
    pad = "  " * depth
    for key, part in value.items():
        if isinstance(part, dict):
            yield f"{pad}{key}:\n"
            yield from _yaml(part, depth + 1)
        elif isinstance(part, list):
            yield f"{pad}{key}:\n"
            for item in part:
                first, *rest = _yaml(item, depth + 2)
                yield f"{pad}  - {first.lstrip()}"
                yield from rest
        else:
            yield f"{pad}{key}: {part}\n"


def _pages(folder: Path, name: str, items: Iterable[Item], size: int, member: str) -> None:
    """Write a list, page by page; each but the last one says where the next begins."""
    page: list[Item] = []
    number = 0
    for item in items:
        if len(page) == size:
            _put(folder, f"{name}-{number}", _page(page, member, number + 1))
            page, number = [], number + 1
        page.append(item)
    _put(folder, f"{name}-{number}", _page(page, member, None))


def _page(items: Sequence[Item], member: str, following: int | None) -> Item:
    if member == "items":
        version = {"resourceVersion": VERSION}
        return {"metadata": version if following is None else {**version, "continue": str(following)}, "items": items}
    return {member: items, **({} if following is None else {"NextToken": str(following)})}


def _put(folder: Path, name: str, answer: Item) -> None:
    (folder / f"{name}.json").write_bytes(json.dumps(answer, separators=(",", ":")).encode())


def answers(folder: Path) -> Iterator[Path]:
    """Give the files with raw API answers, by name."""
    yield from sorted(folder.glob("*.json"))
