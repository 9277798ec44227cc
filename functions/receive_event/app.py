"""Take events in from the intake queue. Invoked by SQS, in batches with partial failure."""

from typing import Any

from aws_lambda_powertools.metrics import Metrics, MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.bootstrap.receive_event import receive_event
from taskgov.contracts.events import Ignored
from taskgov.observability import logger

processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
metrics = Metrics()


def receive(record: SQSRecord) -> None:
    """Take one event in. One that cannot be read fails alone, and goes to the dead-letter queue after its tries."""
    outcome = receive_event()(record.json_body)
    if isinstance(outcome, Ignored):
        metrics.add_metric(name="EventsIgnored", unit=MetricUnit.Count, value=1)
        logger.info("event ignored", extra={"reason": outcome.reason})
    else:
        metrics.add_metric(name="EventsReceived", unit=MetricUnit.Count, value=1)
        logger.info("clusters marked", extra={"clusters": outcome.cluster_arns, "started": outcome.started})


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return which records failed: SQS gives those, and only those, once more."""
    failures = process_partial_response(event=event, record_handler=receive, processor=processor, context=context)
    failed = len(failures["batchItemFailures"])
    metrics.add_metric(name="EventsFailed", unit=MetricUnit.Count, value=failed)
    return dict(failures)
