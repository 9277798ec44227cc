"""What `taskgov doctor` says of an embedded account, whichever backend the cluster has."""

import json
from typing import Any

import boto3
from typer.testing import Result

from taskgov_embedded.walkthrough.world import World
from tests.support.operating import taskgov

OF_THE_STACK = ("stack", "approvers", "session-names")
OF_ITS_RIGHTS = ("network", "authentication-mode", "access-entries", "kubernetes-rights", "iam-permissions")
OF_EVERY_BACKEND_LAST = ("subscription", "policy-document", "governor")


def examined(cluster: str, *options: str) -> dict[str, dict[str, Any]]:
    return checks_in(taskgov("doctor", cluster, *options, "--json"))


def checks_in(result: Result) -> dict[str, dict[str, Any]]:
    """Return the checks of a doctor that was told `--json`, by name."""
    return {check["check"]: check for check in json.loads(result.stdout)["checks"]}


def tell_somebody(world: World) -> None:
    topic = world.stack.outputs["NoticeTopicArn"]
    boto3.client("sns").subscribe(TopicArn=topic, Protocol="email", Endpoint="ops@example.com")
