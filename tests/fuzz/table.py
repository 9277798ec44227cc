"""What runs left in the table, damaged: the function that reads it next handles it, or refuses it."""

import json
import math
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any, Final

import boto3
import yaml
from moto import mock_aws

from taskgov import keys
from taskgov.adapters.dynamodb import Table
from tests.fuzz.handlers import EXECUTION, TOKEN, Functions, record, run
from tests.fuzz.mutation import mutated, written
from tests.fuzz.samples import EVENTS, RICH, busy
from tests.support.clusters import GovernedCluster
from tests.support.governance_table import governance_table
from tests.support.memory import CLUSTER_ARN, NOON, FixedClock, InMemoryDocuments
from tests.support.refusals import REFUSED

MOST_DIGITS: Final = 38
MOST: Final = 1e100
MOST_LEVELS: Final = 30
"""Limits of the service, the levels within an item: AWS, "Supported data types and naming rules in Amazon DynamoDB"."""
POLICY: Final = "policies/ml-cluster.yaml"


@cache
def _service() -> Any:
    return boto3.resource("dynamodb")


@cache
def _left() -> tuple[GovernedCluster, list[dict[str, Any]]]:
    """Return what two runs, one of which wrote, an edit by hand and a refused write leave of a cluster."""
    raw = governance_table(_service())
    cluster = replace(busy(), state=_state(raw))
    cluster.documents.stored[POLICY] = yaml.safe_dump(RICH).encode()
    call = Functions(cluster)
    _lock(raw)
    run(call, "run-1", "apply", locked=True)
    call("receive_event", {"Records": [record("1", EVENTS["cloudtrail_update_compute_quota"])]})
    cluster.state.record_refusal(CLUSTER_ARN, REFUSED)
    raw.put_item(Item={**keys.STOP_SWITCH, "on": False, "by": "ana", "at": NOON.isoformat()})
    cluster.kubernetes.node_objects = cluster.kubernetes.node_objects[:-1]
    cluster.clock.advance(minutes=30)
    run(call, "run-2", locked=True)
    items = raw.scan()["Items"]
    raw.delete()
    return cluster, items


def read_the_table(draw: Random) -> None:
    """Damage up to two items; then an event arrives, a run goes on, the minute is measured, or the day is audited."""
    with mock_aws():
        before, items = _left()
        raw = governance_table(_service())
        odd = draw.sample(range(len(items)), draw.choice((1, 1, 2)))
        for place, item in enumerate(items):
            raw.put_item(Item=_damaged(item, draw) if place in odd else item)
        stored = InMemoryDocuments(dict(before.documents.stored))
        cluster = replace(
            before, hyperpod=deepcopy(before.hyperpod), documents=stored, state=_state(raw), clock=FixedClock()
        )
        cluster.clock.advance(hours=1)
        call = Functions(cluster)
        match draw.randrange(4):
            case 0:
                call("receive_event", {"Records": [record("1", EVENTS["hyperpod_node_health"])]})
            case 1:
                run(call, "run-3", "apply", locked=True)
            case 2:
                call("publish_usage", {})
            case _:
                call("audit_cluster", EVENTS["audit_cluster"])


def _state(raw: Any) -> Any:
    return Table(raw)


def _lock(raw: Any) -> None:
    raw.update_item(
        Key=keys.state(CLUSTER_ARN),
        UpdateExpression="SET lockOwner = :owner, lockExpires = :expires, fencingToken = :token",
        ExpressionAttributeValues={
            ":owner": EXECUTION,
            ":expires": int(NOON.timestamp()) + 86_400,
            ":token": TOKEN,
        },
    )


def _damaged(item: Mapping[str, Any], draw: Random) -> dict[str, Any]:
    """Return an item with other attributes under the same key."""
    key = {name: item[name] for name in ("pk", "sk")}
    rest = {name: value for name, value in item.items() if name not in key}
    if isinstance(rest.get("record"), str) and draw.random() < 0.8:
        inner = mutated(json.loads(rest["record"]), draw)
        return {**item, "record": written(inner, draw).decode(errors="replace")}
    changed = mutated(rest, draw)
    return {**(_storable(changed) if isinstance(changed, dict) else {}), **key}


def _storable(value: Any, levels: int = MOST_LEVELS) -> Any:
    """Return a value as the service can keep it."""
    match value:
        case dict() | list() if not levels:
            return None
        case dict():
            return {_storable(name): _storable(inner, levels - 1) for name, inner in value.items() if name}
        case list():
            return [_storable(inner, levels - 1) for inner in value]
        case str():
            return value.encode(errors="replace").decode()
        case float() | int() if not isinstance(value, bool):
            fits = math.isfinite(value) and len(str(value)) <= MOST_DIGITS and abs(value) < MOST
            return Decimal(str(value)) if fits else str(value)
        case _:
            return value
