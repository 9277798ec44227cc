"""Take events in from the intake queue. Invoked by SQS, in batches with partial failure."""

from typing import Any

from aws_lambda_powertools.metrics import Metrics, MetricUnit
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.typing import LambdaContext

from taskgov.adapters.failures import fields_of
from taskgov.bootstrap.receive_event import receive_event
from taskgov.contracts.events import Ignored, event_in
from taskgov.observability import logger
from taskgov.printable import printable
from taskgov.services.receive_event import Hinted

processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
metrics = Metrics()


def receive(record: SQSRecord) -> tuple[str, Hinted | Ignored]:
    """Read one event. One that cannot be read fails alone, and goes to the dead-letter queue after its tries."""
    try:
        outcome = receive_event()(event_in(record.body))
    except Exception as error:
        logger.error("event not read", extra={"record": record.message_id, **fields_of(error)})
        raise
    if isinstance(outcome, Ignored):
        logger.info("event ignored", extra={"reason": outcome.reason})
    return record.message_id, outcome


@logger.inject_lambda_context(clear_state=True)
@metrics.log_metrics
def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:
    """Return which records failed: SQS gives those, and only those, once more."""
    with processor(event["Records"], receive, context):
        read = [result for status, result, _ in processor.process() if status == "success"]
    hinted = {name: outcome for name, outcome in read if isinstance(outcome, Hinted)}
    marked = receive_event().mark(hinted)
    logger.info("clusters marked", extra={"clusters": marked.cluster_arns, "started": marked.started})
    for name, error in marked.failed.items():
        logger.error("cluster not marked", extra={"record": name, **fields_of(error)})
    if marked.unknown:
        logger.warning(
            "events name no cluster", extra={"clusters": [printable(arn, limit=200) for arn in marked.unknown]}
        )
    failures = [*processor.response()["batchItemFailures"], *({"itemIdentifier": name} for name in marked.failed)]
    for metric, value in (
        ("EventsReceived", len(hinted)),
        ("EventsIgnored", len(read) - len(hinted)),
        ("EventsFailed", len(failures)),
    ):
        metrics.add_metric(name=metric, unit=MetricUnit.Count, value=value)
    return {"batchItemFailures": failures}
