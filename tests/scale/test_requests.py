"""How many requests does each activity of a stack make, by the number of teams? Counted on the embedded stack.

`expected` says how each number comes about; a table of `docs/scale.md` shows them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import ceil
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks.cost_counts import P5, asked
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.world import World
from tests.support.golden import assert_section
from tests.support.tools import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.long

SIZES = 4, 16, 101
"""Teams, each with a node. With the last, nodes and quotas take a second page, and series are more than `MaxSeries`."""
DAYS: Final = 31
"""Days of the record of work that estimates and audits read, one document each."""
KUBERNETES: Final = 12
"""Lists and documents of a look; each list of so few objects is one page."""
WRITES = "Put", "Update", "Delete"
COLUMNS = "Kubernetes", "SageMaker", "EKS", "table, reads", "table, writes", "S3, reads", "S3, writes", "others"
SERVICES = {"kubernetes": "Kubernetes", "sagemaker": "SageMaker", "eks": "EKS"}

Requests = dict[str, int]
"""How many requests by column."""


def expected(teams: int, preempted: int) -> dict[tuple[str, str], Requests]:
    """Return the requests of each function in each activity."""
    pages, capped = ceil(teams / 100), int(teams > 100)
    estimated = 2 if teams > 20 else 1  # teams whose job waits; or that read that there are none, which take 20 runs
    look = {"Kubernetes": KUBERNETES, "SageMaker": 3 + 2 * pages, "EKS": 1, "table, reads": 7}
    publish = look | {"S3, reads": 8 + capped, "S3, writes": 2}
    read = look | {
        "SageMaker": look["SageMaker"] + 1,  # the cluster's tags
        "table, reads": look["table, reads"] + 1,  # the generation
        "table, writes": 4,
        "S3, reads": 4,
        "S3, writes": 3,
    }
    end = publish | {
        "table, writes": 2,
        "S3, reads": 7 + capped,
        "S3, writes": teams,
        "others": 1,
    }
    receive = {"table, reads": 1, "table, writes": 1, "others": 6}
    plan = {"S3, reads": 1, "S3, writes": 1}
    return {
        ("a minute", "PublishUsage"): publish,
        ("a run that finds other quotas than the one before", "ReadSnapshot"): read
        | {"table, reads": read["table, reads"] + pages + 1},
        ("a run that changes nothing", "ReceiveEvent"): receive,
        ("a run that changes nothing", "ReadSnapshot"): read,
        ("a run that changes nothing", "PlanQuotas"): plan,
        ("a run that changes nothing", "PublishUsage"): end,
        ("estimates of starts", "EstimateStarts"): {
            "Kubernetes": KUBERNETES - 1,  # nodes are not read
            "SageMaker": 3,
            "EKS": 1,
            "S3, reads": DAYS + 2 + estimated,
            "S3, writes": 1 + estimated,
        },
        ("an audit", "AuditCluster"): look
        | {"table, writes": 1, "S3, reads": 2 * DAYS + 3, "S3, writes": teams + 5, "others": 1},
        ("a minute that counts preemptions", "PublishUsage"): publish
        | {
            "table, reads": publish["table, reads"] + 2,  # marks of notices, because nobody was notified before: twice
            "table, writes": 2 * preempted + 2,
            "S3, reads": publish["S3, reads"] + 2,
            "S3, writes": publish["S3, writes"] + 2 + capped,
            "others": ceil(preempted / 10),
        },
        ("the minute after it", "PublishUsage"): publish
        | {"S3, reads": publish["S3, reads"] + 1, "S3, writes": publish["S3, writes"] + capped},
    }


def walkthrough(teams: int) -> Walkthrough:
    """Return a cluster of an instance a team, whose even teams borrow what the odd ones do not use yet."""
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
        "schedulerConfig": {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": 70}]},
        "teams": [
            {
                "name": f"team-{n}",
                "quota": {
                    "ComputeQuotaResources": [{"InstanceType": P5, "Count": 1}],
                    "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
                },
            }
            for n in range(teams)
        ],
        "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
    }
    jobs = [
        {"submit": {"team": f"team-{n}", "name": name, "pods": 1, "request": {"nvidia.com/gpu": 8}}}
        for n in range(0, teams, 2)
        for name in ("own", "borrowed")
    ]
    # Estimates learn only from runs that began when the record of work had begun; the schedule of estimates is not due.
    minute = {"waitMinutes": 1}
    jobs.append({"submit": {"team": "team-0", "name": "waiting", "pods": 1, "request": {"nvidia.com/gpu": 8}}})
    return Walkthrough.model_validate(
        {
            "name": f"{teams} teams",
            "source": "tests/scale/test_requests.py",
            "about": "a cluster at work",
            "mode": "apply",
            "starts": "2026-11-20T09:00:00Z",
            "cluster": {"groups": [{"instanceType": P5, "count": teams}]},
            "steps": [{"title": "so it is", "do": [{"policy": document}, minute, *jobs, minute], "expect": {}}],
        }
    )


class Played:
    """A stack in which each activity happened, and what was asked for it."""

    def __init__(self, teams: int) -> None:
        self.teams = teams
        self.found: dict[tuple[str, str], Requests] = {}
        with World(walkthrough(teams)) as self.world:
            self.world.stack.sagemaker.governance.limit_per_cluster = teams
            list(Runner(self.world.walkthrough, self.world).run())
            self._play("a run that finds other quotas than the one before", lambda: self._fire("ResyncAllSchedule"))
            self._play("a run that changes nothing", lambda: self._fire("ResyncAllSchedule"))
            self._play("a minute", self._minute)
            self._play("estimates of starts", lambda: self._fire("EstimateStartsSchedule"))
            self._play("an audit", lambda: self._fire("AuditAllSchedule"))
            self._reclaim()
            self._play("a minute that counts preemptions", self._minute)
            self._play("the minute after it", self._minute)
            self.preempted = sum(len(cycle.preempted) for cycle in self.world.cluster.cycles)

    def _fire(self, schedule: str) -> None:
        self.world.stack.fire(schedule)
        self.world.stack.run_until_quiet()

    def _minute(self) -> None:
        self.world.stack.advance(60, ["PublishUsageSchedule"])

    def _reclaim(self) -> None:
        for number in range(1, self.teams, 2):
            self.world.cluster.submit(job_manifest(f"team-{number}", "own", {"nvidia.com/gpu": 8}))
        self.world.stack.run_until_quiet()

    def _play(self, activity: str, doing: Callable[[], object]) -> None:
        self.world.stack.advance(60, [])  # what EKS says of the cluster is not reused any more
        aws, kubernetes = len(self.world.stack.calls), len(self.world.api_server.calls)
        doing()
        for (function, service, operation), number in asked(self.world, aws, kubernetes).items():
            requests = self.found.setdefault((activity, function.removesuffix("Function")), Counter())
            requests[column(service, operation)] += number


def column(service: str, operation: str) -> str:
    """Return the column of the table in which a request is counted."""
    if service not in {"dynamodb", "s3"}:
        return SERVICES.get(service, "others")
    name = "table" if service == "dynamodb" else "S3"
    return f"{name}, {'writes' if operation.startswith(WRITES) else 'reads'}"


played = cache(Played)


@pytest.mark.parametrize("teams", SIZES)
def test_requests_of_each_activity_are_those_that_its_teams_explain(teams: int) -> None:
    stack = played(teams)
    assert stack.preempted == teams // 2
    for activity, requests in expected(teams, stack.preempted).items():
        assert {name: stack.found[activity].get(name, 0) for name in COLUMNS} == {
            name: requests.get(name, 0) for name in COLUMNS
        }, activity


def test_the_page_shows_the_requests_of_each_activity() -> None:
    sizes = [expected(teams, teams // 2) for teams in SIZES]
    lines = [
        f"| what happens | function | {' | '.join(COLUMNS)} |",
        f"| --- | --- |{' --- |' * len(COLUMNS)}",
    ]
    for activity, function in sizes[0]:
        cells = []
        for name in COLUMNS:
            numbers = [each[activity, function].get(name, 0) for each in sizes]
            cells.append(f"{numbers[0]}" if len(set(numbers)) == 1 else " / ".join(map(str, numbers)))
        lines.append(f"| {activity} | `{function}` | {' | '.join(cells)} |")
    assert_section(ROOT / "docs/scale.md", "requests", "\n".join(lines))
