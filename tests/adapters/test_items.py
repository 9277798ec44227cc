"""Items of the table in every form: of the last release, of this one, of a newer one, and damaged."""

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from boto3.dynamodb.types import TypeDeserializer
from moto import mock_aws

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.items import NEWEST, SCHEMA, upgraded
from taskgov.contracts.steps import Cause
from taskgov.errors import UpstreamError
from taskgov.services.receive_event import Hinted, ReceiveEvent
from taskgov.snapshot.unreadable import UnreadableItem, UnreadableItemError
from tests.adapters.test_state_store import APPLIED, EDIT
from tests.support.memory import CLUSTER_ARN, NOON, FixedClock, InMemoryHyperPod, InMemoryWorkflow

GOLDEN = Path(__file__).parent / "golden" / "items-of-the-last-release.json"
"""What the last release left of a first governance, an edit by hand and a plan that waits for approval."""
OF_LAST_RELEASE: list[dict[str, Any]] = [
    {name: TypeDeserializer().deserialize(value) for name, value in item.items()}
    for item in json.loads(GOLDEN.read_text())
]


def kind(item: dict[str, Any]) -> str:
    return f"{item['pk'].split('#')[0]}/{item['sk'].split('#')[0]}"


def of_kind(wanted: str) -> dict[str, Any]:
    return next(item for item in OF_LAST_RELEASE if kind(item) == wanted)


ARN = of_kind("CLUSTER/STATE")["pk"].removeprefix("CLUSTER#")


@pytest.fixture
def raw() -> Iterator[Any]:
    with mock_aws():
        yield boto3.resource("dynamodb").create_table(
            TableName="governance",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk")],
            BillingMode="PAY_PER_REQUEST",
        )


@pytest.fixture
def of_last_release(raw: Any) -> Table:
    for item in OF_LAST_RELEASE:
        raw.put_item(Item=item)
    return Table(raw)


def test_the_golden_set_has_every_kind_that_the_last_release_wrote_and_none_names_its_form() -> None:
    assert {kind(item) for item in OF_LAST_RELEASE} == {
        "APPROVAL/APPROVAL",
        "CLUSTER/EDIT",
        "CLUSTER/ONCE",
        "CLUSTER/POLICY",
        "CLUSTER/QUOTA",
        "CLUSTER/RUN",
        "CLUSTER/STATE",
        "QUOTA/CLUSTER",
        "SWITCH/STOP",
    }
    assert not any(SCHEMA in item for item in OF_LAST_RELEASE)


def test_what_the_last_release_wrote_is_read(of_last_release: Table) -> None:
    (applied,), (edit,) = of_last_release.applied_quotas(ARN), of_last_release.edits(ARN)
    assert (applied.version, applied.target.team_name, applied.taken_over) == (2, "alpha", False)
    assert (edit.compute_quota_id, edit.event_name) == (applied.compute_quota_id, "UpdateComputeQuota")
    policy = of_last_release.applied_policy(ARN)
    assert policy is not None
    assert policy.version == 1
    assert of_last_release.generation(ARN) > 0
    assert of_last_release.stop_switch() is False
    assert of_last_release.cluster_of(applied.compute_quota_id) == ARN
    assert of_last_release.stamp(ARN) is None
    once = of_kind("CLUSTER/ONCE")["sk"].removeprefix("ONCE#")
    assert of_last_release.was_counted(ARN, once)


def test_what_is_written_names_its_form(raw: Any) -> None:
    table = Table(raw)
    table.record_applied(CLUSTER_ARN, APPLIED)
    table.record_edit(CLUSTER_ARN, EDIT)
    assert {int(item[SCHEMA]) for item in raw.scan()["Items"]} == {NEWEST}


def test_an_older_form_becomes_today_s() -> None:
    for item in OF_LAST_RELEASE:
        assert upgraded(item) == {**item, SCHEMA: NEWEST}


DAMAGED: dict[str, tuple[dict[str, Any], str]] = {
    "of a newer release": ({SCHEMA: NEWEST + 1}, f"its schema is {NEWEST + 1}; this release reads schemas up to"),
    "without a readable form": ({SCHEMA: "x"}, "its schema is 'x', which is not a number"),
    "without its record": ({"record": None}, "record"),
    "cut off": ({"record": '{"compute_quota_id": "quota'}, "JSON"),
    "of another shape": ({"record": "[]"}, "Input should be"),
    "with a number beyond all bounds": ({"record": '{"version": 1e999}'}, "Field required"),
}


@pytest.mark.parametrize("name", DAMAGED)
@pytest.mark.parametrize("sk", ["QUOTA#quota0000001", "POLICY", "LINEAGE"])
def test_an_item_that_cannot_be_read_is_left_out_and_named(raw: Any, sk: str, name: str) -> None:
    change, why = DAMAGED[name]
    item: dict[str, Any] = {"pk": f"CLUSTER#{CLUSTER_ARN}", "sk": sk, "record": "{}", **change}
    raw.put_item(Item={key: value for key, value in item.items() if value is not None})
    good = {**of_kind("CLUSTER/QUOTA"), "pk": f"CLUSTER#{CLUSTER_ARN}", "sk": "QUOTA#quota0000002"}
    raw.put_item(Item=good)
    table, found = Table(raw), list[UnreadableItem]()
    assert len(table.applied_quotas(CLUSTER_ARN, found.append)) == 1
    assert table.applied_policy(CLUSTER_ARN, found.append) is None
    assert table.stamp(CLUSTER_ARN, found.append) is None
    (unreadable,) = found
    assert (unreadable.pk, unreadable.sk) == (f"CLUSTER#{CLUSTER_ARN}", sk)
    assert why in unreadable.because


@pytest.mark.parametrize("change", [{"at": "yesterday"}, {"by": None}, {"at": "0001-01-01T00:00:00+14:00"}])
def test_an_edit_that_cannot_be_read_is_left_out_and_named(raw: Any, change: dict[str, Any]) -> None:
    item = {**of_kind("CLUSTER/EDIT"), "pk": f"CLUSTER#{CLUSTER_ARN}", **change}
    raw.put_item(Item={key: value for key, value in item.items() if value is not None})
    found = list[UnreadableItem]()
    assert Table(raw).edits(CLUSTER_ARN, found.append) == ()
    assert [each.sk for each in found] == [item["sk"]]


def test_where_nobody_takes_note_the_error_names_the_item(raw: Any) -> None:
    raw.put_item(Item={"pk": f"CLUSTER#{CLUSTER_ARN}", "sk": "QUOTA#quota0000001", "record": "{"})
    for reading in (Table(raw).applied_quotas, lambda arn: Table(raw).applied_quota(arn, "quota0000001")):
        with pytest.raises(UpstreamError, match=r"the item QUOTA#quota0000001 of CLUSTER#arn:.* cannot be read"):
            reading(CLUSTER_ARN)


def test_a_record_of_a_run_with_another_key_is_left_out_and_named(raw: Any) -> None:
    raw.put_item(Item={"pk": f"CLUSTER#{CLUSTER_ARN}", "sk": "RUN#x", "endedAt": NOON.isoformat()})
    found = list[UnreadableItem]()
    assert Table(raw).last_run(CLUSTER_ARN, found.append) is None
    assert [(each.sk, each.because) for each in found] == [("RUN#x", "its key does not name a run")]
    with pytest.raises(UpstreamError, match=r"the item RUN#x of CLUSTER#arn:.* cannot be read: its key"):
        Table(raw).last_run(CLUSTER_ARN)


STATE = {"pk": f"CLUSTER#{CLUSTER_ARN}", "sk": "STATE"}
CAUSE = Cause(event_id="e-1", source="s", detail_type="t", at=NOON)


def state_change() -> dict[str, Any]:
    detail = {"ClusterArn": CLUSTER_ARN, "ClusterName": "ml-cluster", "ClusterStatus": "InService"}
    return {
        "version": "0",
        "id": "11111111-aaaa",
        "source": "aws.sagemaker",
        "detail-type": "SageMaker HyperPod Cluster State Change",
        "account": "111122223333",
        "time": "2026-11-20T12:00:00Z",
        "region": "us-east-1",
        "resources": [],
        "detail": {**detail, "InstanceGroups": []},
    }


def test_a_generation_that_is_no_number_is_named_where_it_is_read(raw: Any) -> None:
    raw.put_item(Item={**STATE, "generation": "many"})
    with pytest.raises(UnreadableItemError, match=r"the item STATE of .*: generation is 'many', which is no"):
        Table(raw).generation(CLUSTER_ARN)


@pytest.mark.parametrize("odd", ["3", "many", None, [], {"N": "3"}, True, {1, 2}, Decimal("1.5")])
def test_an_event_of_a_cluster_whose_generation_is_no_number_starts_a_run_that_no_other_has_seen(
    raw: Any, odd: object
) -> None:
    raw.put_item(Item={**STATE, "generation": odd, "fencingToken": 3})
    workflow = InMemoryWorkflow()
    receive = ReceiveEvent(InMemoryHyperPod(), Table(raw), workflow, FixedClock(), "arn:aws:iam::111122223333:role/own")
    hinted = receive(state_change())
    assert isinstance(hinted, Hinted)
    marked = receive.mark({"event": hinted})
    assert (marked.failed, marked.started) == ({}, 1)
    newest = int(NOON.timestamp()) + 1
    assert Table(raw).generation(CLUSTER_ARN) == newest
    assert Table(raw).mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON).generation == newest + 1
    assert int(raw.get_item(Key=STATE)["Item"]["fencingToken"]) == 3


@pytest.mark.parametrize("name", ["lockExpires", "fencingToken", "askedUntil"])
def test_an_event_of_a_cluster_whose_lock_cannot_be_read_starts_nothing_and_names_the_attribute(
    raw: Any, name: str
) -> None:
    raw.put_item(Item={**STATE, "generation": 3, "lockOwner": "run-1", name: "soon"})
    with pytest.raises(UnreadableItemError, match=rf"the item STATE of .*: {name} is 'soon'"):
        Table(raw).mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON)
    assert Table(raw).generation(CLUSTER_ARN) == 4
