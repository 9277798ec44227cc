"""`taskgov approve` and `taskgov reject`: a person answers the run that waits for approval.

The request, with the task token of the waiting run, is in the table. The answer names the caller (STS), and is kept
beside the request: who approved what, and when. S3 does not tell who wrote a policy document; where the writer is known
(metadata `author` of the object), that person may not approve what follows from it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.errors import translated
from taskgov.adapters.s3 import POLICY_KEY
from taskgov.allocation.codec import plan_from_json
from taskgov.bootstrap.aws import CONFIG
from taskgov.contracts.steps import Pointer
from taskgov.errors import NotFoundError
from taskgov_cli.deployed import (
    DEFAULT_STACK,
    AsJson,
    OfCluster,
    PlanId,
    RefusedError,
    StackName,
    caller,
    deployed,
    told,
)
from taskgov_cli.output import console, print_json

if TYPE_CHECKING:
    from taskgov_cli.deployed import Deployed

Request = Mapping[str, Any]
"""The request for approval as it is in the table (`APPROVAL#<plan id>`)."""

NOBODY_WAITS: Final = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})
"""What SendTaskSuccess says of a token whose task is over."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Who answered, who had written the document (None where nobody knows), and when."""

    by: str
    author: str | None
    at: datetime
    approved: bool


def approve(
    plan_id: PlanId, stack: StackName = DEFAULT_STACK, cluster: OfCluster = None, *, as_json: AsJson = False
) -> None:
    """Let a plan that waits for approval be applied: exactly its changes, or none when the world moved meanwhile.

    Example: taskgov approve plan-0123456789abcdef --stack taskgov
    """
    _answer(plan_id, stack, cluster, approved=True, as_json=as_json)


def reject(
    plan_id: PlanId, stack: StackName = DEFAULT_STACK, cluster: OfCluster = None, *, as_json: AsJson = False
) -> None:
    """Refuse a plan that waits for approval: nothing is applied, and the same changes are not asked for again soon.

    Example: taskgov reject plan-0123456789abcdef
    """
    _answer(plan_id, stack, cluster, approved=False, as_json=as_json)


def _answer(plan_id: str, stack: str, cluster: str | None, *, approved: bool, as_json: bool) -> None:
    with told():
        place = deployed(stack)
        request = _request(place, plan_id, cluster)
        me, now = caller(), SystemClock().now()
        author = _author(place, request)
        if approved:
            _require_another_author(author, request, me)
        _send(request, approved=approved, by=me)
        _keep(place, request, Answer(me, author, now, approved=approved))
    if as_json:
        print_json({"planId": plan_id, "clusterArn": request["clusterArn"], "approved": approved, "by": me, "at": now})
        return
    console().print(f"{request['summary']}\n", markup=False)
    told_what = "Approved" if approved else "Rejected"
    console().print(f"{told_what} as {me}. See what came of it: taskgov history {request['clusterName']}", markup=False)


def _request(place: Deployed, plan_id: str, cluster: str | None) -> Request:
    for arn in place.arns(cluster):
        with translated(f"look for the request of {plan_id}"):
            key = {"pk": f"APPROVAL#{arn}", "sk": f"APPROVAL#{plan_id}"}
            request = place.table.get_item(Key=key, ConsistentRead=True).get("Item")
        if request is not None:
            return _still_open(request)
    raise RefusedError(
        f"no plan {plan_id} waits for approval: it expired, or its id is another; runs and their plans: "
        "taskgov history CLUSTER"
    )


def _still_open(request: Request) -> Request:
    if "answeredBy" in request:
        what = "approved" if request["approved"] else "rejected"
        raise RefusedError(
            f"plan {request['planId']} was {what} by {request['answeredBy']} at {request['answeredAt']}; "
            f"what came of it: taskgov history {request['clusterName']}"
        )
    return request


def _require_another_author(author: str | None, request: Request, me: str) -> None:
    if author is not None and author in {me, me.rsplit("/", 1)[-1]}:
        raise RefusedError(
            f"{author} wrote the policy document from which plan {request['planId']} follows; somebody else approves it"
        )


def _author(place: Deployed, request: Request) -> str | None:
    """Return who wrote the plan's policy document; None where its metadata does not say."""
    plan = plan_from_json(place.documents.get(Pointer.model_validate_json(request["plan"])))
    if plan.policy_version is None:
        return None
    key = POLICY_KEY.format(plan.cluster_name)
    try:
        with translated(f"read who wrote {key}"):
            head = boto3.client("s3", config=CONFIG).head_object(
                Bucket=place.bucket_name, Key=key, VersionId=plan.policy_version
            )
    except NotFoundError:
        return None
    return head["Metadata"].get("author")


def _send(request: Request, *, approved: bool, by: str) -> None:
    answer = json.dumps({"approved": approved, "by": by})
    with translated(f"answer the request of {request['planId']}"):
        try:
            boto3.client("stepfunctions", config=CONFIG).send_task_success(
                taskToken=request["taskToken"], output=answer
            )
        except ClientError as error:
            if error.response["Error"]["Code"] not in NOBODY_WAITS:
                raise
            raise RefusedError(
                f"no run waits for plan {request['planId']} any more: the request of {request['askedAt']} expired "
                f"or was answered; ask for a new plan: taskgov reconcile {request['clusterName']}"
            ) from error


def _keep(place: Deployed, request: Request, answer: Answer) -> None:
    with translated(f"plan {request['planId']} was answered, but who answered could not be kept beside its request"):
        place.table.update_item(
            Key={"pk": request["pk"], "sk": request["sk"]},
            UpdateExpression="SET approved = :approved, answeredBy = :by, answeredAt = :at, author = :author",
            ExpressionAttributeValues={
                ":approved": answer.approved,
                ":by": answer.by,
                ":at": answer.at.astimezone(UTC).isoformat(),
                ":author": answer.author or "unknown",
            },
        )
