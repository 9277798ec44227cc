"""The steps that concern the stack: listening, deploying, connecting, examining, and a gradual deployment."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import boto3

from taskgov.adapters.dynamodb import Table
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import GovernanceError, NotFoundError
from taskgov.hyperpod.inferred import POLICY_CALLS, QUOTA_CALLS
from taskgov.snapshot.identity import CLAIM
from taskgov_cli.deployed import RefusedError, deployed
from taskgov_cli.operate import turn
from taskgov_cli.smoke.model import StepError
from taskgov_cli.stack_outputs import stack_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_cli.smoke.model import Sandbox

OUTPUTS: Final = ("TableName", "BucketName", "IntakeQueueUrl", "KubernetesRoleArns", "ReconcileStateMachineArn")
PARAMETERS: Final = {"ApplyMode": "apply", "PublishSchedule": "rate(1 hour)"}
CANARY: Final = {**PARAMETERS, "DeploymentPreference": "Canary10Percent5Minutes"}
RETAINED: Final = ("GovernanceTable", "GovernanceBucket")
"""What the template keeps when its stack is deleted."""
WATCHED: Final = "PublishUsageFunction"
READERS: Final = "taskgov-readers"
ENTRY_SECONDS: Final = 20
"""An access entry needs a moment before EKS lets its principal in."""
NOT_YET: Final = frozenset({"policy-document", "subscription"})
"""What the doctor may miss: nothing is governed yet, and nobody subscribes to this stack."""


def listen(sandbox: Sandbox) -> str:
    """Copy CloudTrail's events of quota and policy calls to a queue of this run."""
    sqs, events, name = boto3.client("sqs", config=CONFIG), boto3.client("events", config=CONFIG), sandbox.team
    pattern = {
        "source": ["aws.sagemaker"],
        "detail-type": ["AWS API Call via CloudTrail"],
        "detail": {"eventName": sorted(QUOTA_CALLS | POLICY_CALLS)},
    }
    rule = events.put_rule(Name=name, EventPattern=json.dumps(pattern), Description="taskgov smoke; may be deleted")
    sandbox.queue_url = sqs.create_queue(QueueName=name)["QueueUrl"]
    attributes = sqs.get_queue_attributes(QueueUrl=sandbox.queue_url, AttributeNames=["QueueArn"])["Attributes"]
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": attributes["QueueArn"],
        "Condition": {"ArnEquals": {"aws:SourceArn": rule["RuleArn"]}},
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    sqs.set_queue_attributes(QueueUrl=sandbox.queue_url, Attributes={"Policy": policy})
    events.put_targets(Rule=name, Targets=[{"Id": "queue", "Arn": attributes["QueueArn"]}])
    return "rule and queue are there"


def stop_listening(sandbox: Sandbox) -> None:
    """Delete the rule and the queue of this run."""
    sqs, events, name = boto3.client("sqs", config=CONFIG), boto3.client("events", config=CONFIG), sandbox.team
    with suppress(events.exceptions.ResourceNotFoundException):
        events.remove_targets(Rule=name, Ids=["queue"])
        events.delete_rule(Name=name)
    for url in sqs.list_queues(QueueNamePrefix=name).get("QueueUrls", ()):
        if url.rpartition("/")[2] == name:
            sqs.delete_queue(QueueUrl=url)


def preflight(sandbox: Sandbox) -> str:
    """Run `taskgov preflight` with the parameters that the stack will have."""
    overrides = [word for item in {**PARAMETERS, **sandbox.parameters}.items() for word in ("-p", "=".join(item))]
    typed = sandbox.taskgov("preflight", *overrides, "--json")
    if typed.code != 0:
        raise StepError(f"exit code {typed.code}: {last_words(typed.output)}")
    return "exit code 0"


def deploy(sandbox: Sandbox) -> str:
    """Deploy the stack, and see its outputs."""
    sandbox.deployer.deploy({**PARAMETERS, **sandbox.parameters})
    cloudformation = boto3.client("cloudformation", config=CONFIG)
    sandbox.outputs = stack_outputs(cloudformation, sandbox.stack, *OUTPUTS)
    return f"the stack has its {len(sandbox.outputs)} outputs"


def undeploy(sandbox: Sandbox) -> None:
    """Stop the runs, delete the stack, and then the table and the bucket, which it retains."""
    if sandbox.deployer.is_there():
        with suppress(GovernanceError, RefusedError):  # the stack goes either way
            turn(deployed(sandbox.stack), on=True, reason="taskgov smoke is over")
        sandbox.deployer.settle()  # what is still being made has no name yet
        sandbox.retained |= {name: found for name in RETAINED if (found := _physical(sandbox, name))}
        sandbox.deployer.delete()
    if table := sandbox.retained.get("GovernanceTable"):
        sandbox.mark = _mark(sandbox, table) or sandbox.mark
        _delete_table(table)
    if bucket := sandbox.retained.get("GovernanceBucket"):
        _delete_bucket(bucket)


def _mark(sandbox: Sandbox, table: str) -> str | None:
    """Return the tag with which the stack marks the cluster, by its table; None where it has not read it yet."""
    try:
        stamp = Table(boto3.resource("dynamodb", config=CONFIG).Table(table)).stamp(sandbox.cluster_arn)
    except NotFoundError:  # the table is gone
        return None
    return None if stamp is None else CLAIM + stamp.lineage


def _delete_table(name: str) -> None:
    client = boto3.client("dynamodb", config=CONFIG)
    with suppress(client.exceptions.ResourceNotFoundException):
        client.delete_table(TableName=name)


def _delete_bucket(name: str) -> None:
    client = boto3.client("s3", config=CONFIG)
    with suppress(client.exceptions.NoSuchBucket):
        for page in client.get_paginator("list_object_versions").paginate(Bucket=name):
            found = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
            objects: list[Any] = [{"Key": item["Key"], "VersionId": item["VersionId"]} for item in found]
            if objects:
                client.delete_objects(Bucket=name, Delete={"Objects": objects, "Quiet": True})
        client.delete_bucket(Bucket=name)


def connect(sandbox: Sandbox) -> str:
    """Give the roles that read the cluster their access entries."""
    eks = boto3.client("eks", config=CONFIG)
    for role in sandbox.outputs["KubernetesRoleArns"].split(","):
        sandbox.entries.append(role)
        eks.create_access_entry(clusterName=sandbox.eks, principalArn=role, kubernetesGroups=[READERS])
    time.sleep(ENTRY_SECONDS)
    return f"{len(sandbox.entries)} access entries were made"


def disconnect(sandbox: Sandbox) -> None:
    """Delete the access entries of this run: their roles are the stack's own, so nobody else made one for them."""
    eks = boto3.client("eks", config=CONFIG)
    for role in sandbox.entries:
        with suppress(eks.exceptions.ResourceNotFoundException):
            eks.delete_access_entry(clusterName=sandbox.eks, principalArn=role)


def doctor(sandbox: Sandbox) -> str:
    """Run `taskgov doctor`; a stack that is minutes old may lack what only its owner can give it."""
    typed = sandbox.taskgov("doctor", sandbox.cluster, "--stack", sandbox.stack, "--json")
    if typed.data is None:
        raise StepError(f"exit code {typed.code}: {last_words(typed.output)}")
    checks = typed.data["checks"]
    bad = [check for check in checks if check["status"] in {"failed", "unknown"} and check["check"] not in NOT_YET]
    if bad:
        raise StepError("; ".join(f"{check['check']}: {check['because']}" for check in bad))
    counted = {status: sum(check["status"] == status for check in checks) for status in ("ok", "warning")}
    return f"{counted['ok']} checks are ok, {counted['warning']} warn"


def canary(sandbox: Sandbox) -> str:
    """Deploy new versions step by step, and see how an alias moves."""
    function = _physical(sandbox, WATCHED)
    if function is None:
        raise StepError(f"the stack has no {WATCHED}")
    client = boto3.client("lambda", config=CONFIG)
    before, seen = client.get_alias(FunctionName=function, Name="live")["FunctionVersion"], set[float]()

    def watch() -> None:
        routing = client.get_alias(FunctionName=function, Name="live").get("RoutingConfig") or {}
        seen.update(routing.get("AdditionalVersionWeights", {}).values())

    sandbox.deployer.deploy({**CANARY, **sandbox.parameters}, sandbox.run_id, watch)
    after = client.get_alias(FunctionName=function, Name="live")["FunctionVersion"]
    if after == before:
        raise StepError(f"the alias of {WATCHED} still points to version {before}")
    if seen != {0.1}:
        raise StepError(
            f"the new version of {WATCHED} got {sorted(seen) or 'nothing'} of the calls during that time instead of 0.1"
        )
    return f"a tenth of the calls, then all, went from version {before} to {after}"


def _physical(sandbox: Sandbox, logical_id: str) -> str | None:
    """Return the name of a resource of the stack; None where it was not made."""
    client = boto3.client("cloudformation", config=CONFIG)
    pages = client.get_paginator("list_stack_resources").paginate(StackName=sandbox.stack)
    resources = (resource for page in pages for resource in page["StackResourceSummaries"])
    found = (resource for resource in resources if resource["LogicalResourceId"] == logical_id)
    return next((resource.get("PhysicalResourceId") for resource in found), None)


def until(seconds: float, every: float, look: Callable[[], Any]) -> Any:
    """Call `look` repeatedly until it finds something, or for so many seconds; return its last result."""
    end = time.time() + seconds
    while not (found := look()) and time.time() < end:
        time.sleep(every)
    return found


def last_words(output: str) -> str:
    """Return the end of what a command printed, on one line."""
    return " ".join(output.split())[-400:] or "nothing was printed"
