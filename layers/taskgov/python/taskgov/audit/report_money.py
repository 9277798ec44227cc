"""How is money shown on the page? One row for each team and instance type, and the sums in the note."""

from typing import Final

from taskgov.audit.money import Money, MoneyLine
from taskgov.audit.report_table import Sheet, Table, amount, name
from taskgov.number_text import number

MONEY: Final[Sheet[MoneyLine]] = Sheet(
    "money",
    "Money",
    "By the prices in the policy document, rounded to cents.",
    (
        name("Team", lambda line: line.team),
        name("Instance type", lambda line: line.instance_type),
        amount("Idle, per hour", lambda line: line.idle_per_hour, "Quota that is not used now"),
        amount("Waiting", lambda line: line.waiting, "What waiting tasks request, for as long as they have waited"),
        amount("Preempted", lambda line: line.preempted, "What ran since admission: at most what has to be done again"),
    ),
)


def money_table(money: Money) -> Table:
    """Return the table with its sums, and what is in none of them."""
    sums = f"Idle: {number(money.idle_per_hour)} per hour. Waiting: {number(money.waiting)}."
    lost = f"Preempted: {number(money.preempted)}."
    left_out = (
        f"Left out: {number(money.left_out_gpu_hours)} GPU-hours of several possible types, or without a price."
        if money.left_out_gpu_hours
        else ""
    )
    return MONEY.of(money.lines, f"{sums} {lost} {left_out}".strip())
