"""Compose `plan_quotas`."""

from functools import cache

from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap import aws
from taskgov.config import Settings
from taskgov.services.plan_quotas import PlanQuotas


class PlanQuotasSettings(Settings):
    bucket_name: str


@cache
def plan_quotas() -> PlanQuotas:
    """Return the use case over AWS."""
    settings = PlanQuotasSettings.from_env()
    return PlanQuotas(documents=Bucket(aws.s3(), settings.bucket_name))
