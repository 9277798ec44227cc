"""What was expected of a step, compared with what holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov_embedded.walkthrough import checks_automation, checks_cluster

if TYPE_CHECKING:
    from taskgov_embedded.walkthrough.expectations import Expectations
    from taskgov_embedded.walkthrough.step_result import Check, StepResult
    from taskgov_embedded.walkthrough.world import World


def check(expected: Expectations, result: StepResult, world: World) -> list[Check]:
    """Compare everything that the step expects; what it does not mention is not compared."""
    results: list[Check] = []
    for member in expected.model_fields_set:
        results += CHECKS[member](getattr(expected, member), result, world)
    return results


CHECKS = {**checks_cluster.CHECKS, **checks_automation.CHECKS}
"""How each member of `Expectations` is checked; a test holds the two together."""
