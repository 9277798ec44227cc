"""A plan as a comment on a pull or merge request: the headline, the changes, and everything else folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.plan import Outcome
from taskgov.allocation.wording import said_number
from taskgov.number_text import counted
from taskgov_cli import plans
from taskgov_cli.formats import escaped, markdown_table
from taskgov_cli.output import findings_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov.allocation.plan import Plan
    from taskgov_cli.grid import Grid

MARK: Final = "<!-- taskgov plan: {about} -->"
"""The first line: by it a later comment about the same document finds the one that it replaces."""
REVIEWED: Final = "<!-- taskgov reviewed: {plan_id}:{changes} -->"
"""The last line: what `taskgov apply --reviewed` takes."""
MOST: Final = 60_000
"""Characters of a comment: GitHub refuses more than 65,536, and GitLab more than 1,000,000."""

_VERDICTS: Final = {
    Outcome.NOTHING_TO_DO: "nothing to change",
    Outcome.PLANNED: "planned",
    Outcome.APPLY: "would be applied",
    Outcome.NEEDS_APPROVAL: "needs approval",
    Outcome.BLOCKED: "blocked",
    Outcome.NO_PROGRESS: "blocked: the same was written before, without effect",
}


def plan_markdown(plan: Plan, about: str = "") -> str:
    """Return the comment, of at most `MOST` characters; sections that do not fit are left out and named.

    `about` is what its mark names: the file of the document; the cluster where it is empty.
    """
    head, details, foot = cut("\n".join(_head(plan, about)), MOST // 2), list(_details(plan)), "\n".join(_foot(plan))
    room, left_out, kept = MOST - len(head) - len(foot), [], []
    for title, text in details:
        if len(text) + 200 <= room:
            kept.append(text)
            room -= len(text)
        else:
            left_out.append(title)
    if left_out:
        kept.append(f"Too long for a comment: {', '.join(left_out)}. `taskgov plan` shows everything.\n")
    return "\n".join((head, *kept, foot))


def cut(text: str, most: int = MOST) -> str:
    """Return the lines of a text that fit into so many characters, and how many do not."""
    if len(text) <= most:
        return text
    lines, kept = text.split("\n"), 0
    size = 100  # for the last line
    while kept < len(lines) and size + len(lines[kept]) < most:
        size += len(lines[kept]) + 1
        kept += 1
    return "\n".join([*lines[:kept], f"{counted(len(lines) - kept, 'more line')}, too long for a comment.", ""])


def headline(plan: Plan) -> str:
    """Return one line: the verdict, how many accelerators move, and who is preempted."""
    moved = sum(max(0.0, change.gpus_after - change.gpus_before) for change in plan.changes)
    taken = sum(max(0.0, change.gpus_before - change.gpus_after) for change in plan.changes)
    parts = []
    if plan.changes:
        parts.append(counted(len({change.subject for change in plan.changes}), "quota changes", "quotas change"))
        gpus = max(moved, taken)
        parts.append("1 GPU moves" if gpus == 1 else f"{said_number(gpus)} GPUs move")
        parts.append(_preempted(plan))
    return "; ".join(filter(None, (", ".join(parts), _verdict(plan))))


def _verdict(plan: Plan) -> str:
    """Return the verdict: in plan mode, what a run in apply mode would do."""
    if plan.outcome is not Outcome.PLANNED:
        return _VERDICTS[plan.outcome]
    if stopped := plans.stopped_by(plan):
        return f"blocked by {', '.join(stopped)}"
    return "needs approval" if any(not verdict.passed for verdict in plan.guardrails) else _VERDICTS[Outcome.PLANNED]


def _preempted(plan: Plan) -> str:
    if not plan.prediction.simulated:
        return "preemptions not predicted"
    jobs = {(e.namespace, e.name) for e in plan.prediction.effects if e.effect == "preempted"}
    least = "" if plan.prediction.is_complete else "at least "
    return f"{least}{counted(len(jobs), 'job')} preempted"


def _head(plan: Plan, about: str) -> Iterator[str]:
    yield MARK.format(about=about or plan.cluster_name)
    yield f"### Quotas of {escaped(plan.cluster_name)}: {headline(plan)}"
    yield ""
    stopped = [verdict for verdict in plan.guardrails if not verdict.passed]
    for verdict in stopped:
        remedy = f" To unblock it: {escaped(verdict.remedy)}" if verdict.remedy else ""
        yield f"* **{escaped(verdict.guardrail)}**: {escaped(verdict.because)}{remedy}"
    if stopped:
        yield ""


def _details(plan: Plan) -> Iterator[tuple[str, str]]:
    """Return title and text of each section; the changes are open, everything else is folded."""
    if plan.changes:
        yield "the changes", markdown_table(plans.changes_table(plan))
    sections: tuple[tuple[str, Grid], ...] = (
        ("Effect on workloads", plans.effects_table(plan)),
        ("What each team gets", plans.allocations_table(plan)),
        ("Capacity", plans.capacity_table(plan)),
        ("Findings", findings_table(plan.findings)),
    )
    for title, grid in sections:
        if grid.rows:
            summary = f"{title} ({len(grid.rows)})"
            text = f"<details><summary>{summary}</summary>\n\n{markdown_table(grid.untitled())}\n</details>\n"
            yield title.lower(), text
    doubts = (*plan.prediction.not_predicted, *(f"Not modelled: {what}" for what in plan.prediction.not_modelled))
    if doubts:
        yield "what is not certain", "".join(f"* {escaped(sentence)}\n" for sentence in doubts)


def _foot(plan: Plan) -> Iterator[str]:
    version = plan.policy_version or "none"
    yield f"Plan `{plan.plan_id}`, changes `{changes_sha256(plan)[:16]}`, document `{version}`;"
    yield f"made from a snapshot of {plan.taken_at:%Y-%m-%d %H:%M} UTC. Nothing is written by this comment."
    yield ""
    yield REVIEWED.format(plan_id=plan.plan_id, changes=changes_sha256(plan))
    yield ""
