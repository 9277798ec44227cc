"""Compose `verify_plan`."""

from functools import cache

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap import aws
from taskgov.bootstrap.backends import backends
from taskgov.config import Settings
from taskgov.services.step_inputs import LastPlan
from taskgov.services.verify_plan import VerifyPlan


class VerifyPlanSettings(Settings):
    table_name: str
    bucket_name: str


@cache
def verify_plan() -> VerifyPlan:
    """Return the use case over AWS."""
    settings = VerifyPlanSettings.from_env()
    documents = Bucket(aws.s3(), settings.bucket_name)
    return VerifyPlan(
        backends=backends(documents),
        documents=documents,
        state=Table(aws.table(settings.table_name)),
        clock=SystemClock(),
        read_plan=LastPlan(),
    )
