"""Compose `take_order`."""

from functools import cache

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.errors import translated
from taskgov.adapters.order_book import DynamoOrderBook, Intake
from taskgov.bootstrap import aws
from taskgov.config import Settings
from taskgov.services.take_order import Rights, TakeOrder


class TakeOrderSettings(Settings):
    table_name: str
    bucket_name: str
    intake_queue_url: str
    rights_name: str
    """The SSM parameter with who may order what: a version of a function keeps its variables, and rights may change."""


@cache
def take_order() -> TakeOrder:
    """Return the use case over AWS."""
    settings = TakeOrderSettings.from_env()
    table = aws.table(settings.table_name)

    def rights() -> Rights:
        with translated("read who may order what"):
            found = aws.ssm().get_parameter(Name=settings.rights_name)["Parameter"]["Value"]
        return Rights.read(found)

    intake = Intake(aws.sqs(), settings.intake_queue_url)
    return TakeOrder(
        book=DynamoOrderBook(table, aws.s3(), settings.bucket_name, aws.stepfunctions(), intake),
        rights=rights,
        clock=SystemClock(),
    )
