"""Whether the stack is deployed, CloudTrail feeds it, somebody gets notices, there is a document, and events arrive."""

from __future__ import annotations

import json
import shlex
from importlib import metadata
from typing import TYPE_CHECKING, Any, Final

from taskgov.number_text import counted
from taskgov.policy.parse import parse_policy
from taskgov_cli.doctor.diagnosis import Diagnosis, failed, ok, unknown, warning
from taskgov_cli.doctor.facts import Unknown

if TYPE_CHECKING:
    from taskgov_cli.doctor.facts import (
        Cluster,
        DeployedStack,
        EventTrace,
        Names,
        PolicyFile,
        Read,
        Subscription,
        Trail,
    )

OUTPUTS: Final = (
    "TableName",
    "BucketName",
    "BusName",
    "NoticeTopicArn",
    "IntakeQueueUrl",
    "IntakeDeadLetterQueueUrl",
    "DeliveryDeadLetterQueueUrl",
    "ReconcileStateMachineArn",
    "AuditStateMachineArn",
    "KubernetesRoleArns",
    "OrderEntryUrl",
    "Approvers",
)
"""Outputs of the stack that commands and people use."""
SETTLED: Final = ("CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE")
DEPLOY: Final = ("sam build", "sam deploy")


def stack_deployed(stack: Read[DeployedStack], names: Names) -> Diagnosis:
    """Check that the stack is there, whole and settled."""
    check = "stack"
    if isinstance(stack, Unknown):
        note = f"Is {names.stack} the stack's name, and this the right account and Region? --stack names another."
        return unknown(check, stack.reason, *DEPLOY, note=note)
    missing = [name for name in OUTPUTS if name not in stack.outputs]
    if missing:
        because = f"stack {stack.name} lacks the outputs {', '.join(missing)}: it is older, or another"
        return failed(check, because, "sam build", f"sam deploy --stack-name {stack.name}")
    look = f"aws cloudformation describe-stack-events --stack-name {stack.name} --max-items 20"
    if "ROLLBACK_FAILED" in stack.status or stack.status.endswith("_FAILED"):
        return failed(check, f"stack {stack.name} is {stack.status}", look)
    if stack.status not in SETTLED:
        return warning(check, f"stack {stack.name} is {stack.status}", look)
    return _as_chosen(stack)


def _as_chosen(stack: DeployedStack) -> Diagnosis:
    """Say which release runs in which mode, and whether somebody changed the stack's resources by hand."""
    check, own = "stack", metadata.version("taskgov")
    release, mode = (stack.outputs.get(name, "unknown") for name in ("Release", "ApplyMode"))
    about = f"stack {stack.name} is {stack.status}: release {release}, ApplyMode {mode}"
    if stack.drift == "DRIFTED":
        look = f"aws cloudformation describe-stack-resource-drifts --stack-name {stack.name}"
        return warning(check, f"{about}; resources were changed outside CloudFormation", look)
    if release != own:
        again = f"sam deploy --stack-name {stack.name}"
        return warning(check, f"{about}; this command is of release {own}", "sam build", again)
    return ok(check, f"{about}, {'no drift' if stack.drift == 'IN_SYNC' else 'drift not checked'}")


def approvers(stack: Read[DeployedStack], names: Names) -> Diagnosis:
    """Return whether two persons are needed: that is a choice of the administrator, not a mistake."""
    check = "approvers"
    if isinstance(stack, Unknown):
        return unknown(check, stack.reason)
    named = stack.outputs.get("Approvers")
    if named is None:
        return unknown(check, f"stack {names.stack} has no output Approvers: it is of an older release")
    if named == "none":
        return ok(check, "Approvers is empty: one person can put a document into force and approve its plans")
    return ok(check, f"{named} may approve; authors cannot approve the plans of their own documents")


def cloud_trail(trails: Read[tuple[Trail, ...]], cluster: Read[Cluster], names: Names) -> Diagnosis:
    """Check that some trail logs write management events: without it EventBridge gets no API calls."""
    check = "trail"
    if isinstance(trails, Unknown):
        return unknown(check, trails.reason)
    good = [trail.name for trail in trails if trail.logging is True and trail.records_writes is True]
    if good:
        return ok(check, f"trail {good[0]} logs write events")
    for trail in trails:
        for reading in (trail.logging, trail.records_writes):
            if isinstance(reading, Unknown):
                return unknown(check, f"trail {trail.name}: {reading.reason}")
    region = f"--region {names.region}"
    without = "edits of quotas and calls on the cluster are found only by the hourly resync"
    for trail in trails:
        if trail.records_writes is True:
            start = f"aws cloudtrail start-logging {region} --name {trail.name}"
            return failed(check, f"trail {trail.name} is not logging, so {without}", start)
    if trails:
        name = trails[0].name
        wanted = json.dumps([{"ReadWriteType": "WriteOnly", "IncludeManagementEvents": True}])
        select = (
            f"aws cloudtrail put-event-selectors {region} --trail-name {name} --event-selectors {shlex.quote(wanted)}"
        )
        start = f"aws cloudtrail start-logging {region} --name {name}"
        because = f"no trail logs write management events, so {without}"
        note = "put-event-selectors replaces the trail's selectors: add those that it already has to the list."
        return failed(check, because, select, *([] if trails[0].logging else [start]), note=note)
    return failed(check, f"the Region has no trail, so {without}", *_new_trail(cluster, names))


def subscriptions(found: Read[tuple[Subscription, ...]], names: Names) -> Diagnosis:
    """Check that somebody receives notices, alarms and requests for approval."""
    check = "subscription"
    topic = names.output("NoticeTopicArn")
    subscribe = f"aws sns subscribe --region {names.region} --topic-arn {topic} --protocol"
    if isinstance(found, Unknown):
        return unknown(check, found.reason)
    confirmed = [subscription for subscription in found if subscription.confirmed]
    if confirmed:
        return ok(check, f"{len(confirmed)} confirmed, e.g. {confirmed[0].protocol} to {confirmed[0].endpoint}")
    if found:
        subscription = found[0]
        because = f"{subscription.endpoint} has not confirmed the subscription, so nobody receives notices"
        again = f"{subscribe} {subscription.protocol} --notification-endpoint {subscription.endpoint}"
        note = "Confirm with the link in the message from SNS; the command sends it again."
        return failed(check, because, again, note=note)
    because = "nobody is subscribed to the topic of notices, alarms and requests for approval"
    fix = f"{subscribe} email --notification-endpoint YOU@EXAMPLE.COM"
    return failed(check, because, fix, note="Use your own address; or deploy with the parameter AlarmEmail.")


def policy_document(found: Read[PolicyFile], cluster: Read[Cluster], names: Names) -> Diagnosis:
    """Check that the cluster has a document, that it is valid, and means this cluster."""
    check = "policy-document"
    if isinstance(found, Unknown):
        return unknown(check, found.reason)
    file, at = f"{names.cluster}.yaml", f"s3://{names.output('BucketName')}/{found.key}"
    put = f"aws s3 cp {file} {at}"
    if found.body is None:
        if isinstance(cluster, Unknown):
            return unknown(check, cluster.reason)
        because = f"there is no document {at}: the cluster is measured, but not governed"
        return failed(check, because, f"taskgov init {names.cluster} --output {file}", put)
    fetch = f"aws s3 cp {at} {file}"
    parsed = parse_policy(found.body)
    if parsed.document is None:
        broken = "; ".join(map(str, parsed.violations))
        fix = (fetch, f"taskgov validate {file}", put)
        return failed(
            check,
            f"{at} breaks {counted(len(parsed.violations), 'rule')}: {broken}",
            *fix,
            note="Correct the document in between.",
        )
    if not isinstance(cluster, Unknown) and parsed.document.cluster.arn != cluster.arn:
        because = f"{at} belongs to another cluster ({parsed.document.cluster.arn})"
        return failed(check, because, f"taskgov init {names.cluster} --output {file}", put)
    return ok(check, f"{at} is valid: {counted(len(parsed.document.teams), 'team')}")


def test_event(trace: Read[EventTrace], names: Names) -> Diagnosis:
    """Check that an event on the project's bus reaches the function that takes events in."""
    check = "test-event"
    if isinstance(trace, Unknown):
        return unknown(check, trace.reason)
    if trace.seconds is not None:
        return ok(check, f"an event on the bus was received after {trace.seconds:.0f} s, and started nothing")
    waiting = "--attribute-names ApproximateNumberOfMessages"
    look = [
        f"aws sqs get-queue-attributes --region {names.region} --queue-url {names.output(queue)} {waiting}"
        for queue in ("IntakeQueueUrl", "IntakeDeadLetterQueueUrl", "DeliveryDeadLetterQueueUrl")
    ]
    because = f"a test event ({trace.token}) was not received within {trace.waited:.0f} s"
    note = "The runbooks docs/runbooks/intake-delayed.md and docs/runbooks/delivery-dead-letters.md say what to do."
    return failed(check, because, *look, note=note)


def _new_trail(cluster: Read[Cluster], names: Names) -> tuple[str, ...]:
    """Return how to make a bucket for a trail, and the trail: its default selectors are what is needed."""
    partition = "aws" if isinstance(cluster, Unknown) else cluster.partition
    bucket, region = f"taskgov-trail-{names.account}-{names.region}", names.region
    arn = f"arn:{partition}:cloudtrail:{region}:{names.account}:trail/taskgov"
    place = "" if region == "us-east-1" else f" --create-bucket-configuration LocationConstraint={region}"
    policy = json.dumps(
        {"Version": "2012-10-17", "Statement": _trail_statements(partition, bucket, names.account, arn)}
    )
    return (
        f"aws s3api create-bucket --region {region} --bucket {bucket}{place}",
        f"aws s3api put-bucket-policy --region {region} --bucket {bucket} --policy {shlex.quote(policy)}",
        f"aws cloudtrail create-trail --region {region} --name taskgov --s3-bucket-name {bucket}",
        f"aws cloudtrail start-logging --region {region} --name taskgov",
    )


def _trail_statements(partition: str, bucket: str, account: str, trail: str) -> list[dict[str, Any]]:
    """Return what lets CloudTrail write its logs (CloudTrail user guide, "Amazon S3 bucket policy for CloudTrail")."""
    common = {"Effect": "Allow", "Principal": {"Service": "cloudtrail.amazonaws.com"}}
    whole, source = f"arn:{partition}:s3:::{bucket}", {"aws:SourceArn": trail}
    owner = {"s3:x-amz-acl": "bucket-owner-full-control", **source}
    look = {"Action": "s3:GetBucketAcl", "Resource": whole, "Condition": {"StringEquals": source}}
    write = {"Action": "s3:PutObject", "Resource": f"{whole}/AWSLogs/{account}/*", "Condition": {"StringEquals": owner}}
    return [{**common, **look}, {**common, **write}]
