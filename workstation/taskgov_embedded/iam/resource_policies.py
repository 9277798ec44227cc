"""Ask the policies of queues, topics and keys of the template about an AWS service that acts for a resource."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from moto.sqs.models import sqs_backends

from taskgov_embedded.iam import evaluation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from taskgov_embedded.account import Account

_HOLDS = {"AWS::SQS::QueuePolicy": "Queues", "AWS::SNS::TopicPolicy": "Topics"}


def allows(account: Account, kind: str, arn: str, action: str, service: str, source_arn: str) -> bool:
    """Return whether the policies of a type (`AWS::SQS::QueuePolicy`) let a service do something with a resource.

    A queue may also have a policy that somebody set by hand.
    """
    name = arn.rsplit(":", 1)[-1]
    statements = [
        statement
        for policy in account.resources.of(kind)
        if any(target.endswith((f"/{name}", f":{name}")) for target in policy.properties[_HOLDS[kind]])
        for statement in evaluation.statements(arn, policy.logical_id, policy.properties["PolicyDocument"])
    ]
    if kind == "AWS::SQS::QueuePolicy":
        own = sqs_backends[account.place.account][account.place.region].get_queue(name).policy
        statements += evaluation.statements(arn, name, json.loads(own or "{}"))
    return _allowed(account, statements, action, arn, service, source_arn)


def key_allows(account: Account, key_arn: str, action: str, service: str, source_arn: str) -> bool:
    """Return whether the policy of a key lets a service use it; a key that the template does not make lets everyone."""
    for key in account.resources.of("AWS::KMS::Key"):
        if key_arn.endswith(f"/{key.physical_id}"):
            statements = evaluation.statements(key_arn, key.logical_id, key.properties["KeyPolicy"])
            return _allowed(account, statements, action, key_arn, service, source_arn)
    return True


def _allowed(
    account: Account, statements: Iterable[evaluation.Statement], action: str, arn: str, service: str, source_arn: str
) -> bool:
    source = {"aws:SourceArn": source_arn, "aws:SourceAccount": account.place.account, "aws:SecureTransport": "true"}
    verdict = evaluation.evaluate(statements, action, arn, source, principal=service)
    account.requests.unknown_condition_keys.update(verdict.unknown_keys)
    return verdict.allowed
