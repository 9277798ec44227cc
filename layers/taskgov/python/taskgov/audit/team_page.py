"""What may everybody in a team know of how it stands? The values of the page that a team has of its own.

It names other teams where they lend, borrow or preempt, and no job or person of theirs: members of a team may read its
page, and nothing else of the cluster. `team_page_html` draws it, `taskgov.services.team_pages` stores it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

from taskgov.allocation.lease_book import LeaseEntry, lease_book
from taskgov.audit.owners import known_teams
from taskgov.audit.report import LoanLine, PreemptionLine, TaskLine, UsageLine
from taskgov.audit.report_build import leading_first, loan_line, preemption_line, usage_line
from taskgov.audit.report_tasks import NO_STARTS, Starts, task_lines
from taskgov.kueue.named import named
from taskgov.scheduling.status_reading import read_conditions
from taskgov.snapshot.model import KubernetesObject, Snapshot
from taskgov.usage.cluster_usage import ClusterUsage
from taskgov.usage.tasks import TaskState, tasks_of

Item = TypeVar("Item")

KEY: Final = "reports/{cluster}/teams/{team}.html"
"""Where the page of a team is in the bucket; the latest takes the place of the one before."""
_WAITS: Final = frozenset({TaskState.PENDING, TaskState.PREEMPTED})
_PREEMPTED: Final = "Preempted to accommodate"
"""How Kueue's sentence about the preemptor begins: it has ids of another team's work, which say nothing here."""


@dataclass(frozen=True, slots=True)
class WaitLine:
    """A task that waits, and what Kueue said of it last."""

    task: str
    since: datetime
    kueue_says: str
    """Empty where Kueue has not said anything since it was preempted or submitted."""


@dataclass(frozen=True, slots=True)
class TeamPage:
    """One team at one moment."""

    team: str
    cluster_name: str
    taken_at: datetime
    usage: tuple[UsageLine, ...]
    loans: tuple[LoanLine, ...]
    """What it borrows from others, or others from it."""
    leases: tuple[LeaseEntry, ...]
    """What it leases to others, or others to it."""
    tasks: tuple[TaskLine, ...]
    tasks_left_out: int
    waits: tuple[WaitLine, ...]
    preemptions: tuple[PreemptionLine, ...]

    @property
    def key(self) -> str:
        """Where the page is in the bucket."""
        return KEY.format(cluster=self.cluster_name, team=self.team)


def team_pages(snapshot: Snapshot, usage: ClusterUsage, starts: Starts = NO_STARTS) -> Iterator[TeamPage]:
    """Yield the page of every team that has a quota, a promise or a task, by name.

    `usage` is that of the snapshot, with loans; `starts` are kept estimates.
    """
    leases = lease_book(snapshot)
    tasks = _grouped((task.team, task) for task in tasks_of(snapshot))
    said = {(its.team, its.job): _said(item) for item in snapshot.kueue.workloads for its in (named(item),)}
    lines = _grouped((line.usage.team, line) for line in leading_first(usage.teams))
    loans = _grouped((team, loan) for loan in usage.loans for team in dict.fromkeys((loan.borrower, loan.lender)))
    leased = _grouped((team, lease) for lease in leases for team in dict.fromkeys((lease.borrower, lease.donor)))
    preempted = _grouped((preemption.team, preemption) for preemption in reversed(usage.preemptions))
    for team in sorted({*known_teams(snapshot), *tasks}):
        shown, left_out = task_lines(tasks.get(team, ()), starts=starts)
        its_leases = tuple(leased.get(team, ()))
        yield TeamPage(
            team=team,
            cluster_name=snapshot.cluster.name,
            taken_at=snapshot.taken_at,
            usage=tuple(usage_line(line, its_leases) for line in lines.get(team, ())),
            loans=tuple(map(loan_line, loans.get(team, ()))),
            leases=its_leases,
            tasks=shown,
            tasks_left_out=left_out,
            waits=tuple(_waits(shown, said)),
            preemptions=tuple(preemption_line(preemption, usage) for preemption in preempted.get(team, ())),
        )


def _waits(tasks: Iterable[TaskLine], said: Mapping[tuple[str, str], str]) -> Iterator[WaitLine]:
    for task in tasks:
        if task.state in _WAITS:
            yield WaitLine(task.task, task.since, said.get((task.team, task.task), ""))


def _grouped(pairs: Iterable[tuple[str, Item]]) -> Mapping[str, list[Item]]:
    """Return what belongs to each team, in the order in which it is given."""
    found: dict[str, list[Item]] = {}
    for team, item in pairs:
        found.setdefault(team, []).append(item)
    return found


def _said(item: KubernetesObject) -> str:
    """Return what Kueue said of a workload that waits."""
    condition = read_conditions(item.get("status") or {}).get("QuotaReserved")
    message = "" if condition is None or condition.status else str(condition.message)
    return "" if message.startswith(_PREEMPTED) else message
