"""A refused write, for tests that keep one, forget one, or plan around it."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from taskgov.snapshot.records import RefusalError, RefusedWrite
from tests.support.memory import NOON

REFUSED: Final = RefusedWrite(
    subject="team-a/gpus",
    name="gpus",
    team="team-a",
    kind="update-quota",
    resource_id="quota0000001",
    version=3,
    wanted="a" * 64,
    error=RefusalError.LIMIT_REACHED,
    because="you have reached the limit",
    plan_id="plan-1",
    at=NOON,
)


def refused_for(quota: Mapping[str, Any], at: datetime, wanted: str = REFUSED.wanted) -> RefusedWrite:
    """Return the refusal of an update of a team's quota, as SageMaker's list has the quota."""
    name, team = quota["Name"], quota["ComputeQuotaTarget"]["TeamName"]
    return replace(
        REFUSED,
        subject=f"{team}/{name}",
        name=name,
        team=team,
        resource_id=quota["ComputeQuotaId"],
        version=quota["ComputeQuotaVersion"],
        wanted=wanted,
        at=at,
    )
