"""A plan for people: capacity, what each team gets and why, changes in their order, and what stops them."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from taskgov.allocation.guardrails import FOR_A_PERSON
from taskgov.allocation.plan import CapacityLine, Change, ChangeKind, Outcome, Plan, WorkloadEffect
from taskgov.allocation.wording import said_number
from taskgov_cli.grid import Grid, table
from taskgov_cli.output import NO, OK, findings_table

OUTCOME_STYLE = {
    Outcome.NOTHING_TO_DO: "green",
    Outcome.PLANNED: "cyan",
    Outcome.APPLY: "green",
    Outcome.NEEDS_APPROVAL: "yellow",
    Outcome.BLOCKED: "red",
    Outcome.NO_PROGRESS: "red",
}


def shown(plan: Plan) -> Iterator[RenderableType]:
    """Return the parts of a plan that have something to say."""
    heading = Text.assemble(
        ("Plan ", "bold"),
        plan.plan_id,
        " for cluster ",
        (plan.cluster_name, "bold"),
        ": ",
        (plan.outcome.value, OUTCOME_STYLE[plan.outcome]),
    )
    if plan.outcome is Outcome.PLANNED and (stopped := stopped_by(plan)):
        heading.append(f", and stopped by {', '.join(stopped)}", style="red")
    yield heading
    yield capacity_table(plan)
    yield allocations_table(plan)
    yield changes_table(plan)
    yield effects_table(plan)
    yield table("Not predicted", ("what",), [(sentence,) for sentence in plan.prediction.not_predicted])
    yield from (Text(f"Not modelled: {sentence}", style="dim") for sentence in plan.prediction.not_modelled)
    yield stopped_table(plan)
    yield findings_table(plan.findings)


def stopped_table(plan: Plan) -> Grid:
    """Return the guardrails that stop a plan, or ask for approval."""
    rows = [(verdict.guardrail, verdict.because, verdict.remedy) for verdict in plan.guardrails if not verdict.passed]
    return table("Stopped by", ("guardrail", "because", "what would unblock it"), rows)


def is_stopped(plan: Plan) -> bool:
    """Return whether no run would write the plan: a guardrail stops it that no approval overrides, in each mode."""
    return plan.outcome in {Outcome.BLOCKED, Outcome.NO_PROGRESS} or bool(stopped_by(plan))


def stopped_by(plan: Plan) -> list[str]:
    """Return the names of the guardrails that stop a plan and that no approval overrides."""
    failed = [verdict.guardrail for verdict in plan.guardrails if not verdict.passed]
    return [name for name in dict.fromkeys(failed) if name not in FOR_A_PERSON]


def exit_code_of(plan: Plan, *, changes: int) -> int:
    """Return the exit code: NO for a plan that is stopped, `changes` for one that would write, else OK."""
    if is_stopped(plan):
        return NO
    return OK if plan.outcome is Outcome.NOTHING_TO_DO else changes


def capacity_table(plan: Plan) -> Grid:
    """Return the capacity by instance type, and what of it counts."""
    rows = [
        (line.instance_type, line.nodes, line.counted, len(line.held), line.headroom, line.usable, _apart(line))
        for line in plan.capacity
    ]
    columns = (
        "instance type",
        "nodes #",
        "counted #",
        "held #",
        "headroom #",
        "usable #",
        "notes",
    )
    return table("Capacity", columns, rows)


def _apart(line: CapacityLine) -> str:
    single = f"{line.one_thread} at one thread per core" if line.one_thread else ""
    return "; ".join(filter(None, (single, *line.left_out, *line.held)))


def allocations_table(plan: Plan) -> Grid:
    """Return what each team gets, and why."""
    rows = [
        (
            allocation.team,
            allocation.instance_type,
            allocation.unit,
            said_number(allocation.before),
            said_number(allocation.after),
            allocation.because,
        )
        for allocation in plan.allocations
    ]
    return table("Teams", ("team", "instance type", "unit", "before #", "after #", "because"), rows)


def changes_table(plan: Plan) -> Grid:
    """Return the writes in their order."""
    rows = [
        (
            change.index + 1,
            said_wave(change),
            change.team or change.name,
            said_kind(change),
            said_number(change.gpus_before),
            said_number(change.gpus_after),
            change.because,
        )
        for change in plan.changes
    ]
    columns = ("#", "wave #", "team", "change", "GPUs before #", "GPUs after #", "because")
    return table("Changes, in this order; each wave settles before the next", columns, rows, main=True)


def said_wave(change: Change) -> str:
    """Return the number of a change's wave; a dash in plans that were stored before there were waves."""
    return str(change.wave) if change.wave else "-"


def said_kind(change: Change) -> str:
    """Return what a change does, and whether it is the first or second of two writes of the quota."""
    if change.is_low:
        return f"{change.kind}, first of two writes"
    second = change.kind is ChangeKind.UPDATE_QUOTA and change.target_version is None
    return f"{change.kind}, second of two writes" if second else change.kind


def effects_table(plan: Plan) -> Grid:
    """Return the effect on workloads."""
    rows = [
        (effect.team, effect.task or effect.name, _effect(effect), effect.gpus, effect.because)
        for effect in plan.prediction.effects
    ]
    title = "What the scheduler would do" if plan.prediction.is_complete else "What the scheduler would do, at least"
    return table(title, ("team", "workload", "effect", "GPUs #", "because"), rows)


def _effect(effect: WorkloadEffect) -> str:
    return f"{effect.effect} in wave {effect.wave}" if effect.wave else effect.effect
