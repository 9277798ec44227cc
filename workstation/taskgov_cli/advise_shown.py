"""Advice for people: what changes, the proof, who is worse off, what was tried, and what was not simulated."""

from __future__ import annotations

from difflib import unified_diff
from typing import TYPE_CHECKING, Any, Final

from rich.text import Text

from taskgov.advice.past import HOUR
from taskgov.advice.proving import gain_of
from taskgov.advice.words import candidate_words
from taskgov_cli.formats import unfolded
from taskgov_cli.grid import table

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rich.console import RenderableType

    from taskgov.advice.judging import Result
    from taskgov.advice.proving import Proof
    from taskgov_cli.advise_report import Report

NOT_SIMULATED: Final = (
    "placement of GPUs (a job of 8 may need one machine)",
    "changed behavior (with shorter waits people may submit other work, or more)",
    "checkpoints (a preempted job starts again: the worst case)",
    "node failures, leases, and work that runs when a split begins (each split starts empty)",
    "quotas of other instance types (the same borrow limit applies to them), and HyperPod's idle pool",
)


def shown(report: Report, output: Path | None) -> Iterator[RenderableType]:
    """Return the advice for people."""
    advice = report.advice
    if advice.candidate is None:
        yield Text.assemble(("Change nothing", "bold"), f": {advice.because}.")
    else:
        yield Text.assemble((candidate_words(advice.candidate, fair=report.fair), "bold"), f": {advice.because}.")
    now = dict(advice.today.teams)
    rows = [
        (team, now[team].quota, own.quota, _limit(now[team].limit), _limit(own.limit))
        for team, own in advice.terms.teams
        if own != now[team]
    ]
    yield table("What changes", ("team", "quota today, GPUs #", "advised #", "may borrow today #", "advised #"), rows)
    yield table("Proof: chosen before each split, judged on the weeks after it", _PROOF, _proofs(report), main=True)
    if advice.proofs:
        yield from _sums(advice.proofs)
    if report.exact is not None:
        before, after = report.exact
        yield Text(f"The last split by the exact model: {_hours(before)} h -> {_hours(after)} h.")
    yield table(
        "Who is worse off",
        ("team", "than today, in splits #", "than alone on the own quota #", "by at most, h #"),
        _worse(advice.proofs),
    )
    tried = [
        (
            candidate_words(known.candidate, fair=report.fair),
            f"{known.relative_wait:.2f}",
            f"{100 * known.lost:.1f}",
            f"{known.worse} of {known.of}",
        )
        for known in sorted(advice.tried, key=lambda known: known.relative_wait)
    ]
    yield table(
        "Tried on past weeks", ("candidate", "wait beside today's #", "work lost, % #", "worse than alone #"), tried
    )
    for held in report.held:
        yield Text(f"Kept: {held}.")
    for unlike in report.unlike:
        yield Text(f"The plan of the changed document rounds to a different number: {unlike}.", style="yellow")
    if report.unmeasured >= HOUR:
        hours = report.unmeasured / HOUR
        yield Text(f"The record of work leaves out {hours:,.0f} hours; jobs that ended in them are missing.")
    if report.left_out:
        yield Text(f"Left out, because the document does not have these teams: {', '.join(report.left_out)}.")
    yield Text("Not simulated:")
    yield from (Text(f"  - {what}") for what in NOT_SIMULATED)
    if report.changed is not None and report.before is not None:
        yield from (unfolded(line) for line in _diff(report, output))
        if output is not None:
            yield unfolded(f"taskgov apply --policy {output}")


def _diff(report: Report, output: Path | None) -> Iterator[str]:
    before, after = (report.before or "").splitlines(), (report.changed or "").splitlines()
    yield from unified_diff(before, after, "in force", str(output or "advised"), n=1, lineterm="")


_PROOF: Final = (
    "from week #",
    "chosen",
    "mean wait today, h #",
    "advised, h #",
    "95 % today, h #",
    "advised, h #",
    "lost today, % #",
    "advised, % #",
)


def _proofs(report: Report) -> list[tuple[str, ...]]:
    return [
        (
            f"{proof.split.middle / 604800:.0f}",
            candidate_words(proof.candidate, fair=report.fair),
            _hours(proof.today),
            _hours(proof.advised),
            f"{proof.today.p95_wait / 3600:.2f}",
            f"{proof.advised.p95_wait / 3600:.2f}",
            f"{100 * proof.today.lost:.1f}",
            f"{100 * proof.advised.lost:.1f}",
        )
        for proof in report.advice.proofs
    ]


def _sums(proofs: tuple[Proof, ...]) -> Iterator[Text]:
    wins = sum(proof.won for proof in proofs)
    lost = sum(proof.advised.lost_gpu_hours for proof in proofs)
    before = sum(proof.today.lost_gpu_hours for proof in proofs)
    change = round(-100 * gain_of(proofs))
    lost_words = f"GPU-hours lost {lost:,.0f} instead of {before:,.0f}"
    yield Text(f"Over {len(proofs)} splits: mean wait {change:+d} %, {wins} won; {lost_words}.")


def _worse(proofs: tuple[Proof, ...]) -> list[tuple[Any, ...]]:
    rows = []
    for team in sorted({team for proof in proofs for team in proof.advised.teams}):
        today = [p for p in proofs if team in p.advised.worse_than(p.today)]
        alone = [p for p in proofs if team in p.advised.worse_than(p.alone)]
        if today or alone:
            by = [p.advised.teams[team].mean_wait - p.today.teams[team].mean_wait for p in today]
            by += [p.advised.teams[team].mean_wait - p.alone.teams[team].mean_wait for p in alone]
            rows.append((team, len(today), len(alone), f"{max(by) / 3600:.2f}"))
    return rows


def _hours(result: Result) -> str:
    return f"{result.mean_wait / 3600:.2f}"


def _limit(limit: int | None) -> str:
    return "alone" if limit is None else f"{limit:,}"


def as_data(report: Report) -> dict[str, Any]:
    """Return the advice for programs. Waits are in seconds."""
    advice = report.advice
    return {
        "advice": advice.candidate,
        "because": advice.because,
        "gain": advice.gain,
        "noise": advice.noise,
        "won": sum(proof.won for proof in advice.proofs),
        "terms": {team: {"today": dict(advice.today.teams)[team], "advised": own} for team, own in advice.terms.teams},
        "proofs": advice.proofs,
        "exact": None if report.exact is None else dict(zip(("today", "advised"), report.exact, strict=True)),
        "tried": advice.tried,
        "kept": report.held,
        "unmeasuredSeconds": report.unmeasured,
        "leftOut": report.left_out,
        "planned": report.unlike,
        "notSimulated": NOT_SIMULATED,
        "document": report.changed,
    }
