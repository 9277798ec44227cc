"""How is advice on quotas shown on the page? What is advised with its proof, and what it changes for whom."""

from collections.abc import Callable, Sequence
from typing import Final

from taskgov.audit.quota_advice import QuotaAdvice, TeamAdvice
from taskgov.audit.report_table import Cell, Column, Field, Sheet, Table, amount, name, text, when
from taskgov.number_text import NOTHING, duration, number, percent


def advice_tables(advice: Sequence[QuotaAdvice]) -> tuple[Table, ...]:
    """Return the advice with its proof, and what it changes for whom."""
    changes = ((known, team) for known in advice for team in known.teams)
    return ADVICE.of(advice), CHANGES.of(changes)


def _both(label: str, meaning: str, words: Callable[[float], str], before: str, after: str) -> Field[QuotaAdvice]:
    """Return a column of a number of the proof, today and as advised; `before` and `after` are its fields."""

    def cell(known: QuotaAdvice) -> Cell:
        if known.proof is None:
            return NOTHING, 0.0
        today, advised = getattr(known.proof, before), getattr(known.proof, after)
        return f"{words(today)} \N{RIGHTWARDS ARROW} {words(advised)}", advised - today

    return Field(Column(label, "number", f"{meaning}: today, and as advised"), cell)


def _won(known: QuotaAdvice) -> Cell:
    return (NOTHING, 0.0) if known.proof is None else (f"{known.proof.won} of {known.proof.splits}", known.proof.won)


def _worse(known: QuotaAdvice) -> str:
    return NOTHING if known.proof is None else ", ".join(known.proof.worse_than_today) or "nobody"


def _limit(limit: int | None) -> Cell:
    return ("alone", -1.0) if limit is None else (number(limit), limit)


ADVICE: Final[Sheet[QuotaAdvice]] = Sheet(
    "advice",
    "Advice on quotas",
    "Other quotas, limits and rules of preemption, tried on the record of work: once a week, chosen on past weeks and "
    "judged on the weeks after them. Nothing is applied by it.",
    (
        name("Instance type", lambda known: known.instance_type),
        when("Made", lambda known: known.made_at),
        text("Advice", lambda known: known.advised or "no change"),
        text("Why", lambda known: known.because, "long"),
        _both("Mean wait", "Over all splits", duration, "mean_wait", "advised_mean_wait"),
        _both("95 % wait", "Mean of the splits", duration, "p95_wait", "advised_p95_wait"),
        _both("Work lost", "To preemption", percent, "lost_percent", "advised_lost_percent"),
        Field(Column("Splits won", "number"), _won),
        text("Waits longer than today", _worse),
        amount("Jobs", lambda known: known.jobs, "On record, in the weeks that were examined"),
        amount(
            "Hours not measured",
            lambda known: round(known.unmeasured_hours),
            "Not covered by the record",
            is_rare=True,
        ),
    ),
)
CHANGES: Final[Sheet[tuple[QuotaAdvice, TeamAdvice]]] = Sheet(
    "advised-quotas",
    "Advised quotas",
    "In accelerators. taskgov advise writes the changed document (docs/advise.md).",
    (
        name("Team", lambda row: row[1].team),
        name("Instance type", lambda row: row[0].instance_type),
        amount("Quota", lambda row: row[1].quota),
        amount("Advised", lambda row: row[1].advised_quota),
        Field(Column("May borrow", "number"), lambda row: _limit(row[1].may_borrow)),
        Field(Column("Advised to borrow", "number"), lambda row: _limit(row[1].advised_may_borrow)),
    ),
)
