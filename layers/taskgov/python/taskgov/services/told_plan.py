"""What is said of a plan, cut to what a state, an event or a message can carry: the plan in the bucket has it whole."""

from collections import Counter
from typing import Final

from taskgov.allocation.plan import GuardrailVerdict, Plan
from taskgov.services.wording import shortened

MOST_OF_A_GUARDRAIL: Final = 3
"""Verdicts of one guardrail that are said; there may be one for each row of each team."""


def stopped_by(plan: Plan) -> tuple[GuardrailVerdict, ...]:
    """Return the verdicts that did not let the plan through: the first of each guardrail, then how many more it has."""
    told: list[GuardrailVerdict] = []
    seen = Counter[str]()
    for verdict in plan.guardrails:
        if verdict.passed:
            continue
        seen[verdict.guardrail] += 1
        if seen[verdict.guardrail] <= MOST_OF_A_GUARDRAIL:
            because, remedy = shortened(verdict.because), shortened(verdict.remedy)
            told.append(GuardrailVerdict(verdict.guardrail, passed=False, because=because, remedy=remedy))
    more = {name: count - MOST_OF_A_GUARDRAIL for name, count in seen.items() if count > MOST_OF_A_GUARDRAIL}
    told += [GuardrailVerdict(name, passed=False, because=f"and {count:,} more") for name, count in more.items()]
    return tuple(told)
