"""Which commands does a finding's remedy begin with? Lines for a shell, with the names of this cluster filled in.

`finding_report` calls it for each finding. A command only shows something, or requests a run, which keeps to
guardrails, mode and approvals; whatever writes at once is left to the reader, who adds `--yes`. Commands take the stack
from TASKGOV_STACK, and the region and the credentials from the environment.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from shlex import quote
from typing import Final

from taskgov.allocation.guardrails import FOR_A_PERSON
from taskgov.allocation.plan import Outcome
from taskgov.audit.report import Command, PlanRemedy
from taskgov.findings import Finding, of_audit, of_document, of_plan, of_state
from taskgov.findings.kind import FindingKind
from taskgov.printable import printable
from taskgov.usage.tasks import Task, TaskState


@dataclass(frozen=True, slots=True)
class About:
    """What the commands of a finding are filled in from."""

    cluster: str
    subject: str
    teams: tuple[str, ...]
    """Its owners; empty for what is the administrator's."""
    waiting: Mapping[str, str]
    """Team -> the task that has waited longest, as `explain` takes it."""
    document: str = ""
    """The file that was used instead of the document in force; empty where none was."""


def commands_of(finding: Finding, about: About, remedy: PlanRemedy | None = None) -> tuple[Command, ...]:
    """Return what to type, in order: first the commands for the plan, if it would remedy the finding."""
    stopped_by = () if remedy is None else remedy.stopped_by
    is_stopped = not FOR_A_PERSON.issuperset(stopped_by)
    first = () if remedy is None else ((_plan,) if stopped_by else (_run,))
    # A run would not make the changes of a plan that is stopped.
    own = (make for make in BY_CODE.get(finding.code, ()) if not (is_stopped and make is _run))
    makers = dict.fromkeys((*first, *own))
    return tuple(command for make in makers for command in make(about))


def plan_commands(cluster: str, outcome: Outcome, *, is_stopped: bool, document: str = "") -> tuple[Command, ...]:
    """Return what to type for the plan of an audit: what stops it, where something does, and else a run."""
    about = About(cluster, cluster, (), {}, document)
    return tuple(_plan(about) if is_stopped or outcome in {Outcome.BLOCKED, Outcome.NO_PROGRESS} else _run(about))


def longest_waiting(tasks: Iterable[Task]) -> dict[str, str]:
    """Return team -> TEAM/TASK of the task that has waited longest; ties by name."""
    waits = [task for task in tasks if task.state in {TaskState.PENDING, TaskState.PREEMPTED}]
    newest_first = sorted(waits, key=lambda task: (task.since, task.job), reverse=True)
    return {task.team: f"{task.team}/{task.job}" for task in newest_first}


_Maker = Callable[[About], Iterator[Command]]


def _edit(about: About) -> Iterator[Command]:
    file = f"{about.cluster}.yaml"
    yield Command(
        f"Edit {file}, then show what that changes (with --yes it takes effect):", _line("apply", "--policy", file)
    )


def _work(about: About) -> Iterator[Command]:
    yield Command("Show the record of work on which the advice is based:", _on("history", about, "--work"))


def _validate(about: About) -> Iterator[Command]:
    yield Command("Check the document:", _line("validate", f"{about.cluster}.yaml"))


def _run(about: About) -> Iterator[Command]:
    if about.document:
        does = "Put the document into force (with --yes), which starts a run:"
        yield Command(does, _line("apply", "--policy", about.document))
    else:
        yield Command("Start a run, which makes the plan's changes or requests approval:", _on("reconcile", about))


def _retry(about: About) -> Iterator[Command]:
    yield Command("Retry what was refused:", _on("reconcile", about, "--retry-refused"))


def _plan(about: About) -> Iterator[Command]:
    under = ("--policy", about.document) if about.document else ()
    yield Command("Show the plan and what stops it:", _line("plan", "--cluster", about.cluster, *under))


def _doctor(about: About) -> Iterator[Command]:
    yield Command("Check what is broken:", _on("doctor", about))


def _history(about: About) -> Iterator[Command]:
    yield Command("Show the last runs and their plans:", _on("history", about))


def _govern(about: About) -> Iterator[Command]:
    yield Command("Show which stacks claim the cluster (--yes assigns it to this one):", _on("govern", about))


def _jobs(about: About) -> Iterator[Command]:
    teams = [part for team in about.teams for part in ("--team", team)]
    yield Command("List the tasks:", _line("jobs", "--cluster", about.cluster, *teams))


def _status(about: About) -> Iterator[Command]:
    yield Command("Show what every team has:", _line("status", "--cluster", about.cluster))


def _team(about: About) -> Iterator[Command]:
    for team in about.teams[:1]:
        yield Command("Show the team's quotas:", _line("explain", "--cluster", about.cluster, "--team", team))


def _waiting(about: About) -> Iterator[Command]:
    """Explain the task that has waited longest; list the team's tasks where it is not known."""
    found = [about.waiting[team] for team in about.teams if team in about.waiting]
    if found:
        yield _explained("Explain the task that has waited longest:", about, found[0])
    else:
        yield from _jobs(about)


def _workload(about: About) -> Iterator[Command]:
    yield _explained("Explain the workload:", about, about.subject)


def _explained(does: str, about: About, workload: str) -> Command:
    return Command(does, _line("explain", "--cluster", about.cluster, "--", workload))


def _on(command: str, about: About, *options: str) -> str:
    return _line(command, *options, "--", about.cluster)


def _line(*words: str) -> str:
    """Return a line for a POSIX shell. What ends the options is left out where nothing after it looks like one."""
    if "--" in words:
        place = words.index("--")
        if not any(word.startswith("-") for word in words[place + 1 :]):
            words = (*words[:place], *words[place + 1 :])
    return " ".join(["taskgov", *(quote(printable(word)) for word in words)])


_KINDS: Final[Mapping[tuple[_Maker, ...], tuple[FindingKind, ...]]] = {
    (_edit,): (
        of_document.UNKNOWN_INSTANCE_TYPE,
        of_document.NO_TEAMS,
        of_document.UNKNOWN_FAMILY,
        of_document.NO_ACCELERATORS,
        of_document.UNSUPPORTED_PARTITION,
        of_document.SHARE_MAY_BE_NOTHING,
        of_document.PROMISE_BESIDE_THE_WHOLE,
        of_document.BORROW_LIMIT_IGNORED,
        of_document.BORROW_LIMIT_ABOVE_500,
        of_document.BORROW_LIMIT_ROUNDS_TO_ZERO,
        of_document.TEAM_WITHOUT_PROMISE,
        of_document.LEASE_BEYOND_DONOR,
        of_document.NOBODY_KEEPS_REMAINDER,
        of_document.DEMAND_WILL_NEVER_MOVE,
        of_plan.OVER_COMMITMENT,
        of_plan.ORCHESTRATED_ELSEWHERE,
        of_plan.CAPACITY_SHORTAGE,
        of_plan.FLOORS_EXCEED_CAPACITY,
        of_plan.QUOTA_WITHOUT_NODES,
        of_plan.FAMILY_WITHOUT_NODES,
        of_plan.SHARE_ROUNDS_TO_NOTHING,
        of_plan.LEASE_REFUSED,
        of_plan.LEASE_PARTIAL,
        of_plan.BORROWING_UNKNOWN,
        of_plan.TOO_MANY_TYPES,
        of_plan.TEAM_NOT_IN_POLICY,
        of_plan.TEAM_FROZEN,
        of_plan.CO_OWNED_LEFT,
        of_plan.EDIT_LEFT,
        of_state.HELD_BACK,
        of_audit.BORROW_LIMIT_UNUSABLE,
        of_audit.WEIGHT_ZERO,
        of_audit.NOMINAL_ABOVE_ALLOCATABLE,
        of_audit.HOARDING,
        of_audit.IDLE_QUOTA,
        of_audit.PREEMPTION_LOOP,
        of_audit.MUTE_ENDED,
        of_audit.NOTICE_TOPIC_REFUSED,
    ),
    (_edit, _jobs): (of_plan.BUDGET_THRESHOLD,),
    (_validate, _edit): (of_state.POLICY_VIOLATION,),
    (_run,): (of_plan.QUOTA_IN_FLIGHT, of_plan.BETWEEN_WRITES, of_audit.QUOTA_DRIFT, of_audit.POLICY_DRIFT),
    (_retry,): (of_state.WRITE_REFUSED,),
    (_plan,): (
        of_plan.QUOTA_STATUS_STUCK,
        of_state.NO_ROOM,
        of_audit.POLICY_STATUS_STUCK,
        of_audit.REMEDIES_UNKNOWN,
    ),
    (_doctor,): (
        of_plan.CAPACITY_END_UNKNOWN,
        of_plan.BUDGET_NOT_MEASURED,
        of_plan.UNKNOWN_SETTINGS,
        of_state.UNREADABLE_ITEM,
        of_state.UNREADABLE_OBJECT,
        of_state.KUEUE_VERSION,
        of_state.KUEUE_VERSION_UNKNOWN,
        of_audit.QUEUE_DRIFT,
        of_audit.UNREADABLE_LOCK,
    ),
    (_doctor, _history): (of_plan.MASS_LOSS, of_state.STATE_RESTORED),
    (_history,): (of_state.NO_PROGRESS,),
    (_govern,): (of_state.OTHER_STACK, of_state.OTHER_STACK_YOUNGER),
    (_jobs,): (of_plan.CAPACITY_ENDS, of_audit.OVER_QUOTA, of_audit.LOOPS_NOT_SEARCHED),
    (_status,): (of_audit.SERIES_CUT,),
    (_work,): (of_audit.QUOTAS_ADVISED,),
    (_team,): (of_plan.SECOND_QUOTA, of_plan.QUOTA_DISABLED),
    (_waiting,): (of_audit.STARVED,),
    (_workload,): (of_audit.REQUEST_NEVER_FITS, of_audit.EVICTION_LOOP),
}
"""What is typed -> kinds of findings; a code that is said in two ways stands once."""
BY_CODE: Final = {kind.code: makers for makers, kinds in _KINDS.items() for kind in kinds}
