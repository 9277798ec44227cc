"""Orders of people over the stack's table, bucket and waiting runs. Items are listed in `docs/architecture.md`."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from botocore.exceptions import ClientError

from taskgov import keys
from taskgov.adapters.coordination import KEPT_DAYS
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.errors import translated
from taskgov.adapters.items import NEWEST, SCHEMA, in_form, read
from taskgov.adapters.lock import RELEASE
from taskgov.adapters.s3 import POLICY_KEY, REVIEWED, Bucket
from taskgov.contracts.events import ORDERS, RUN_ORDERED
from taskgov.contracts.orders import DocumentOrder, ManualOrder, RunOrder, UnlockOrder
from taskgov.contracts.steps import Pointer
from taskgov.errors import ConflictError, UpstreamError
from taskgov.people import Person
from taskgov.ports import Answer, ApprovalRequest
from taskgov.services.step_inputs import stored_plan
from taskgov.snapshot.records import Authorship

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.service_resource import Table as DynamoDBTable
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_stepfunctions import SFNClient

NOBODY_WAITS: Final = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})
"""What SendTaskSuccess says of a token whose task is over."""
CHANGED: Final = frozenset({"PreconditionFailed", "ConditionalRequestConflict", "412", "409"})
"""What S3 says of a conditional write that somebody else's write forestalled."""


@dataclass(frozen=True, slots=True)
class Intake:
    """The queue that the events of clusters come through."""

    sqs: "SQSClient"
    url: str


class DynamoOrderBook:
    """The `OrderBook` port over AWS."""

    def __init__(self, table: "DynamoDBTable", s3: "S3Client", bucket: str, runs: "SFNClient", intake: Intake) -> None:
        self._table = table
        self._s3 = s3
        self._bucket = bucket
        self._runs = runs
        self._intake = intake

    def request(self, cluster_arn: str, plan_id: str) -> ApprovalRequest | None:
        """Return the request `APPROVAL#<plan id>` of a cluster, with the version of the plan's document."""
        with translated(f"look for the request of {plan_id}"):
            item = self._table.get_item(Key=keys.request(cluster_arn, plan_id), ConsistentRead=True).get("Item")
        if item is None:
            return None
        asked = read(item, _request)
        pointer = read(item, lambda found: Pointer.model_validate_json(str(found["plan"])))
        if asked is None or pointer is None or (asked.cluster_arn, asked.plan_id) != (cluster_arn, plan_id):
            raise UpstreamError(f"the request of {plan_id} on {cluster_arn} cannot be read: it names another plan")
        plan = stored_plan(Bucket(self._s3, self._bucket), pointer)
        return replace(asked, policy_version=plan.policy_version)

    def claim(self, request: ApprovalRequest, answer: Answer) -> None:
        """Keep the answer once, for the task that was read; the same person may repeat the same answer."""
        with translated(f"keep the answer to the request of {request.plan_id}"):
            self._table.update_item(
                Key=keys.request(request.cluster_arn, request.plan_id),
                UpdateExpression="SET approved = :approved, answeredBy = :by, answeredPerson = :person, "
                "answeredAt = if_not_exists(answeredAt, :at), author = :author",
                ConditionExpression="taskToken = :token AND (attribute_not_exists(answeredBy) "
                "OR (answeredPerson = :person AND approved = :approved))",
                ExpressionAttributeValues={
                    ":approved": answer.approved,
                    ":by": answer.by.arn,
                    ":person": answer.by.identity,
                    ":at": answer.at.isoformat(),
                    ":author": answer.author,
                    ":token": request.task_token,
                },
            )

    def tell(self, request: ApprovalRequest, answer: Answer) -> bool:
        """Answer the waiting task; False when it is over."""
        output = json.dumps({"approved": answer.approved, "by": answer.by.arn, "person": answer.by.identity})
        with translated(f"answer the request of {request.plan_id}"):
            try:
                self._runs.send_task_success(taskToken=request.task_token, output=output)
            except ClientError as error:
                if error.response["Error"]["Code"] not in NOBODY_WAITS:
                    raise
                return False
        return True

    def turn(self, by: Person, at: datetime, reason: str, *, on: bool) -> None:
        """Set the stop switch, and keep who set it, when and why."""
        with translated("turn the stop switch"):
            self._table.put_item(
                Item=in_form({**keys.STOP_SWITCH, "on": on, "by": by.arn, "at": at.isoformat(), "reason": reason})
            )

    def put_document(self, order: DocumentOrder) -> str:
        """Store a document in place of the one that was seen; return its version."""
        key = POLICY_KEY.format(order.cluster_name)
        only: dict[str, Any] = {"IfNoneMatch": "*"} if order.replaces is None else {"IfMatch": order.replaces}
        metadata = {} if order.reviewed is None else {REVIEWED: order.reviewed}
        with translated(f"store {key}"):
            try:
                answer = self._s3.put_object(
                    Bucket=self._bucket, Key=key, Body=order.text.encode(), Metadata=metadata, **only
                )
            except ClientError as error:
                if error.response["Error"]["Code"] not in CHANGED:
                    raise
                raise ConflictError(f"somebody wrote {key} meanwhile; look at theirs first, and apply again") from error
        return answer["VersionId"]

    def authorship(self, cluster_name: str, version: str) -> Authorship | None:
        """Return who put a version into force, and who accepted it."""
        return Table(self._table).authorship(cluster_name, version)

    def record_author(self, cluster_name: str, version: str, by: Person, at: datetime, claim: str) -> None:
        """Keep who put a version into force, and who is said to have written it."""
        values = {"author": by.identity, "storedBy": by.arn, "storedAt": at.isoformat()}
        self._record(cluster_name, version, values | ({"claim": claim} if claim else {}))

    def record_acceptance(self, cluster_name: str, version: str, by: Person, at: datetime) -> None:
        """Keep who accepted a version of an unknown author."""
        self._record(cluster_name, version, {"acceptedBy": by.identity, "acceptedAt": at.isoformat()})

    def withdraw_acceptance(self, cluster_name: str, version: str, by: Person) -> None:
        """Forget that this person accepted a version; another's acceptance stays."""
        try:
            with translated(f"forget who accepted the document of {cluster_name}"):
                self._table.update_item(
                    Key=keys.document(cluster_name, version),
                    UpdateExpression="REMOVE acceptedBy, acceptedAt",
                    ConditionExpression="acceptedBy = :by",
                    ExpressionAttributeValues={":by": by.identity},
                )
        except ConflictError:
            return

    def record_order(self, order: ManualOrder | UnlockOrder, by: Person, at: datetime) -> str:
        """Keep that a person is about to write by hand, or frees a lock; return the id, which names the content."""
        about = {"planId": order.plan_id} if isinstance(order, ManualOrder) else {"reason": order.reason}
        digest = sha256(f"{order.model_dump_json()} {by.arn} {at.isoformat()}".encode())
        order_id = f"{order.action}-{digest.hexdigest()[:16]}"
        with translated(f"keep the order to {order.action} on {order.cluster_arn}"):
            self._table.put_item(
                Item=in_form(
                    {
                        **keys.order(order.cluster_arn, at, order_id),
                        "action": order.action,
                        **about,
                        "by": by.arn,
                        "person": by.identity,
                        "at": at.isoformat(),
                        "expiresAt": int((at + timedelta(days=KEPT_DAYS)).timestamp()),
                    }
                )
            )
        return order_id

    def free_lock(self, order: UnlockOrder) -> None:
        """Free the lock if owner, token and end are as the order says."""
        until = "attribute_not_exists(lockExpires)" if order.expires is None else "lockExpires = :expires"
        of_token = (
            "(fencingToken = :token OR attribute_not_exists(fencingToken))"
            if not order.fencing_token
            else ("fencingToken = :token")
        )
        with translated(f"free the lock of {order.cluster_arn}"):
            try:
                self._table.update_item(
                    Key=keys.state(order.cluster_arn),
                    UpdateExpression=RELEASE,
                    ConditionExpression=f"lockOwner = :owner AND {of_token} AND {until}",
                    ExpressionAttributeValues={
                        ":owner": order.owner,
                        ":token": order.fencing_token,
                        **({} if order.expires is None else {":expires": order.expires}),
                    },
                )
            except ClientError as error:
                if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
                    raise
                raise ConflictError(
                    f"the lock of {order.cluster_arn} changed meanwhile: its owner renewed it or another took it"
                ) from error

    def request_run(self, order: RunOrder | UnlockOrder, by: Person, at: datetime) -> str:
        """Put the event into the queue past the bus, where anybody who may put events could send one like it."""
        about: dict[str, Any] = (
            {"retryRefused": order.retry_refused}
            if isinstance(order, RunOrder)
            else {"unlocked": f"lock of {order.owner} freed by hand: {order.reason}"}
        )
        event = {
            "version": "0",
            "id": str(uuid4()),
            "source": ORDERS,
            "detail-type": RUN_ORDERED,
            "time": at.isoformat(),
            "resources": [],
            "detail": {"clusterArn": order.cluster_arn, "by": by.arn, **about},
        }
        with translated(f"ask for a run on {order.cluster_arn}"):
            self._intake.sqs.send_message(QueueUrl=self._intake.url, MessageBody=json.dumps(event))
        return str(event["id"])

    def _record(self, cluster_name: str, version: str, values: Mapping[str, str]) -> None:
        with translated(f"keep who is behind the document of {cluster_name}"):
            self._table.update_item(
                Key=keys.document(cluster_name, version),
                UpdateExpression="SET #schema = :schema, " + ", ".join(f"{name} = :{name}" for name in values),
                ExpressionAttributeNames={"#schema": SCHEMA},
                ExpressionAttributeValues={":schema": NEWEST, **{f":{name}": value for name, value in values.items()}},
            )


def _request(item: Mapping[str, Any]) -> ApprovalRequest:
    """Read a request; the version of its document is in its plan."""
    return ApprovalRequest(
        cluster_arn=str(item["clusterArn"]),
        cluster_name=str(item["clusterName"]),
        plan_id=str(item["planId"]),
        policy_version=None,
        task_token=str(item["taskToken"]),
        summary=str(item["summary"]),
        asked_at=str(item["askedAt"]),
        expires_at=int(str(item["expiresAt"])),
        answered_by=_text(item, "answeredBy"),
        answered_person=_text(item, "answeredPerson"),
        answered_at=_text(item, "answeredAt"),
        approved=bool(item["approved"]) if "approved" in item else None,
    )


def _text(item: Mapping[str, Any], name: str) -> str | None:
    return str(item[name]) if name in item else None
