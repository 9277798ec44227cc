"""The steps that test the API itself: how writes settle, which errors come, and what CloudTrail records."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

from taskgov.bootstrap.aws import CONFIG
from taskgov.contracts.events import Hint, parse_event
from taskgov.errors import MalformedEventError
from taskgov.hyperpod import inferred
from taskgov.hyperpod.cluster_arn import cluster_arn
from taskgov_cli.smoke.model import Inferred, StepError
from taskgov_cli.smoke.steps_stack import until

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_cli.smoke.model import Sandbox

IN_FLIGHT: Final = frozenset({"Creating", "Updating", "Deleting"})
LOOK_SECONDS: Final = 2
TRAIL_SECONDS: Final = 900
"""CloudTrail delivers events within five minutes on average, and promises nothing (its user guide)."""
NOWHERE: Final = "taskgovsmoke"
"""A cluster id that no cluster has."""


def probe(sandbox: Sandbox) -> str:
    """Make a quota by hand, change it, write it wrongly in each way whose error is inferred, and delete it."""
    made = _written(
        sandbox, "CreateComputeQuota", Name=sandbox.probe, ClusterArn=sandbox.cluster_arn, **_config(sandbox)
    )
    quota = made["ComputeQuotaId"]
    sandbox.quota_ids.append(quota)
    _refused(
        sandbox, "STILL_SETTLING", "a write while another settles", inferred.STILL_SETTLING, _update(sandbox, quota, 1)
    )
    version = _settle(sandbox, "CreateComputeQuota", quota)  # the second, where that write was taken after all
    _written(sandbox, "UpdateComputeQuota", **_update(sandbox, quota, version))
    _settle(sandbox, "UpdateComputeQuota", quota)
    stale = _update(sandbox, quota, version)
    _refused(sandbox, "STALE_VERSION", "an outdated TargetVersion", inferred.STALE_VERSION, stale)
    create = {"Name": sandbox.probe, **_config(sandbox)}
    again = {**create, "ClusterArn": sandbox.cluster_arn}
    _refused(sandbox, "NAME_TAKEN", "the name of an existing quota of the cluster", inferred.NAME_TAKEN, again)
    nowhere = {**create, "ClusterArn": f"{sandbox.cluster_arn.rpartition('/')[0]}/{NOWHERE}"}
    _refused(sandbox, "UNKNOWN_CLUSTER", "a cluster that does not exist", inferred.UNKNOWN_CLUSTER, nowhere)
    _written(sandbox, "DeleteComputeQuota", ComputeQuotaId=quota)
    _settle(sandbox, "DeleteComputeQuota", quota)
    slowest = max(settled["seconds"] for settled in sandbox.observed.settled)
    allowed = _patience()
    _note(
        sandbox,
        "LOOKS",
        "how long a write takes to settle",
        f"at most {allowed} s",
        f"{slowest:g} s",
        slowest <= allowed,
    )
    return f"settled within {slowest:g} s; {_said(sandbox)}"


def remove_probe(sandbox: Sandbox) -> None:
    """Delete the quota that was made by hand."""
    delete_quotas(sandbox, sandbox.probe)


def trail(sandbox: Sandbox) -> str:
    """Wait for CloudTrail's events of what was written, and read them as the product does."""
    wanted = {"CreateComputeQuota", "UpdateComputeQuota", "DeleteComputeQuota"}

    def come_so_far() -> set[Any]:
        _take_messages(sandbox)
        return {event["detail"].get("eventName") for event in sandbox.observed.events if _succeeded(event)}

    until(TRAIL_SECONDS, 10, lambda: wanted <= come_so_far())
    come = come_so_far()
    unread = [sentence for event in sandbox.observed.events if (sentence := _unread(event))]
    form = "as taken for true"
    came = "; ".join(dict.fromkeys(unread)) or (form if come else "no event came")
    _note(
        sandbox,
        "spellings, named_in_call",
        "the form of quota calls in CloudTrail",
        form,
        came,
        came == form,
    )
    if missing := wanted - come:
        raise StepError(
            f"no event arrived for {', '.join(sorted(missing))} within {TRAIL_SECONDS} s: is there a trail that logs?"
        )
    if unread:
        raise StepError(came)
    return f"{len(sandbox.observed.events)} events arrived, and name their quota"


def node_event(sandbox: Sandbox) -> str:
    """Put the event of an unhealthy node into the stack's queue, as its rule does; nobody may put it on the bus."""
    event_id = f"{sandbox.run_id}-node"
    event = {
        "version": "0",
        "id": event_id,
        "detail-type": "SageMaker HyperPod Cluster Node Health Event",
        "source": "aws.sagemaker",
        "account": sandbox.account,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time())),
        "region": sandbox.cluster_arn.split(":")[3],
        "resources": [sandbox.cluster_arn],
        "detail": {
            "ClusterName": sandbox.cluster,
            "ClusterArn": sandbox.cluster_arn,
            "InstanceId": "i-0123456789abcdef0",
            "HealthSummary": {"HealthStatus": "Unhealthy", "HealthStatusReason": "taskgov smoke"},
        },
    }
    url, sent = sandbox.outputs["IntakeQueueUrl"], time.time()
    boto3.client("sqs", config=CONFIG).send_message(QueueUrl=url, MessageBody=json.dumps(event))

    def its_run() -> Mapping[str, Any] | None:
        runs = sandbox.taskgov("history", sandbox.cluster, "--stack", sandbox.stack, "--json").data or []
        ended = [run for run in runs if "startedAt" in run]  # not the plan that waits
        later = [run for run in ended if datetime.fromisoformat(run["startedAt"]).timestamp() >= sent]
        return next((run for run in reversed(later)), None)

    run = until(300, 15, its_run)
    if run is None:
        raise StepError("no run followed within 300 s")
    # Events that come together are one hint, and its first gives the run its cause.
    is_cause = run.get("cause", {}).get("eventId") == event_id
    return f"a run followed{'' if is_cause else ' it and another event'}, and ended {run['outcome']}"


def delete_quotas(sandbox: Sandbox, team: str) -> None:
    """Delete the quotas of a team of this run. Raises StepError for one that stays."""
    client = boto3.client("sagemaker", config=CONFIG)

    def there() -> list[str]:
        pages = client.get_paginator("list_compute_quotas").paginate(ClusterArn=sandbox.cluster_arn)
        found = [quota for page in pages for quota in page["ComputeQuotaSummaries"] if quota["Status"] != "Deleted"]
        return [quota["ComputeQuotaId"] for quota in found if quota["ComputeQuotaTarget"]["TeamName"] == team]

    def gone() -> bool:
        for quota in there():
            try:
                client.delete_compute_quota(ComputeQuotaId=quota)
            except ClientError as error:  # it settles, or is being deleted
                if error.response["Error"]["Code"] not in inferred.CONFLICTS | {"ResourceNotFound"}:
                    raise
        return not there()

    if not until(inferred.COMMAND_PATIENCE, inferred.SETTLE_SECONDS, gone):
        raise StepError(f"quota {', '.join(there())} of team {team} is still there")


def _config(sandbox: Sandbox, weight: int = 0) -> dict[str, Any]:
    return {
        "ComputeQuotaConfig": {
            "ComputeQuotaResources": [{"InstanceType": sandbox.instance_type, "Count": 1}],
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
            "PreemptTeamTasks": "LowerPriority",
        },
        "ComputeQuotaTarget": {"TeamName": sandbox.probe, "FairShareWeight": weight},
    }


def _update(sandbox: Sandbox, quota: str, version: int) -> dict[str, Any]:
    return {"ComputeQuotaId": quota, "TargetVersion": version, **_config(sandbox, weight=1)}


def _call(operation: str) -> Callable[..., Any]:
    client: Any = boto3.client("sagemaker", config=CONFIG)
    names = {client.meta.method_to_api_mapping[name]: name for name in client.meta.method_to_api_mapping}
    return getattr(client, names[operation])  # type: ignore[no-any-return]


def _written(sandbox: Sandbox, operation: str, **arguments: Any) -> Any:
    sandbox.observed.settled.append({"operation": operation, "began": time.time()})
    return _call(operation)(**arguments)


def _settle(sandbox: Sandbox, operation: str, quota: str) -> int:
    """Wait until a write has settled; return the quota's version, 0 where it is deleted. Raises StepError."""
    client = boto3.client("sagemaker", config=CONFIG)

    def settled() -> tuple[str, int] | None:
        try:
            found = client.describe_compute_quota(ComputeQuotaId=quota)
        except client.exceptions.ResourceNotFound:
            return "Deleted", 0
        return None if found["Status"] in IN_FLIGHT else (found["Status"], found["ComputeQuotaVersion"])

    status, version = until(_patience(), LOOK_SECONDS, settled) or ("in flight", 0)
    entry = sandbox.observed.settled[-1]
    seconds = round(time.time() - entry.pop("began"), 1)
    entry |= {"status": status, "seconds": seconds}
    if status == "in flight" or "Failed" in status:
        raise StepError(f"{operation} came to {status} after {seconds:g} s")
    return version


def _refused(sandbox: Sandbox, name: str, about: str, assumed: str, arguments: Mapping[str, Any]) -> None:
    """Make a write that should be refused, and note with which error."""
    operation = "UpdateComputeQuota" if "ComputeQuotaId" in arguments else "CreateComputeQuota"
    code, message = "no error", ""
    try:
        _call(operation)(**arguments)
    except ClientError as error:
        code, message = error.response["Error"]["Code"], error.response["Error"].get("Message", "")
    sandbox.observed.errors.append({"case": name, "operation": operation, "code": code, "message": message})
    _note(sandbox, name, about, assumed, code, code == assumed)


def _note(sandbox: Sandbox, name: str, about: str, assumed: str, came: str, agrees: bool) -> None:  # noqa: FBT001
    sandbox.observed.inferred.append(Inferred(name, about, assumed, came, agrees))


def _said(sandbox: Sandbox) -> str:
    others = [found for found in sandbox.observed.inferred if not found.agrees]
    if not others:
        return "every error is the expected one"
    return "; ".join(f"{found.about}: {found.came}, and not {found.assumed}" for found in others)


def _patience() -> int:
    """Return for how many seconds a run waits for a wave to settle."""
    befores = (0, *(until_look for until_look, _ in inferred.LOOKS))
    return sum((look - before) * seconds for before, (look, seconds) in zip(befores, inferred.LOOKS, strict=False))


def _take_messages(sandbox: Sandbox) -> None:
    """Read the queue, and sort out which events are of quotas of this run: deletions name nothing but an id."""
    client, observed = boto3.client("sqs", config=CONFIG), sandbox.observed
    known = {event["id"] for event in observed.heard}
    while messages := client.receive_message(QueueUrl=sandbox.queue_url, MaxNumberOfMessages=10).get("Messages"):
        for message in messages:
            event = json.loads(message["Body"])
            observed.heard += [event] if event["id"] not in known else []
            known.add(event["id"])
            client.delete_message(QueueUrl=sandbox.queue_url, ReceiptHandle=message["ReceiptHandle"])
    mine = (sandbox.run_id, *sandbox.quota_ids)
    observed.events = [event for event in observed.heard if any(word in json.dumps(event["detail"]) for word in mine)]


_ID: Final = inferred.spellings(inferred.QUOTA_ID)


def _succeeded(event: Mapping[str, Any]) -> bool:
    return not event["detail"].get("errorCode")


def _unread(event: Mapping[str, Any]) -> str | None:
    """Return why an event is not read as it should be; None where it is, and for a call that failed."""
    name = str(event["detail"].get("eventName"))
    if not _succeeded(event):
        return None
    try:
        read = parse_event(event, own_role_arn="")
    except MalformedEventError as error:
        return f"{name}: {error}"
    if not isinstance(read, Hint) or read.subject.compute_quota_id is None:
        return f"{name}: no quota is found in it"
    detail = event["detail"]
    if not any(_ID[0] in (detail.get(part) or {}) for part in ("requestParameters", "responseElements")):
        return f"{name}: {inferred.QUOTA_ID} is spelled differently"
    if read.subject.cluster_arn is not None:
        cluster_arn(read.subject.cluster_arn)
    return None
