"""One contract for the table and for its in-memory twin."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from math import ceil
from typing import TYPE_CHECKING, Any, cast

import boto3
import pytest
from moto import mock_aws

from taskgov.adapters.dynamodb import Table
from taskgov.contracts.steps import Cause, Pointer
from taskgov.errors import LockLostError, UpstreamError
from taskgov.hyperpod.model import (
    ComputeQuotaConfig,
    ComputeQuotaResource,
    ComputeQuotaTarget,
    ResourceSharingConfig,
    SchedulerConfig,
)
from taskgov.ports import TURN_SECONDS, Lock, RunRecord, StateStore
from taskgov.snapshot.identity import Loss, RestoredState, StateStamp
from taskgov.snapshot.records import AppliedPolicy, AppliedQuota, PastQuota, QuotaEdit, RefusalError
from tests.support.governance_table import governance_table
from tests.support.memory import CLUSTER_ARN, NOON, InMemoryState
from tests.support.refusals import REFUSED

if TYPE_CHECKING:
    from taskgov.snapshot.unreadable import UnreadableItem

OTHER_ARN = CLUSTER_ARN[:-1] + "m"
CAUSE = Cause(event_id="e-1", source="aws.sagemaker", detail_type="SageMaker HyperPod Cluster State Change", at=NOON)
SEEN = Pointer(bucket="governance", key="snapshots/ml-cluster/1.json", sha256="a" * 64)
APPLIED = AppliedQuota(
    compute_quota_id="quota0000001",
    version=3,
    config=ComputeQuotaConfig(compute_quota_resources=(ComputeQuotaResource(instance_type="ml.g5.8xlarge", count=2),)),
    target=ComputeQuotaTarget(team_name="team-a", fair_share_weight=10),
    plan_id="plan-1",
    at=NOON,
    history=(PastQuota(NOON - timedelta(days=1), ComputeQuotaConfig()),),
    adopted=ComputeQuotaConfig(),
    promise="digest",
    sharing_within_budget=ResourceSharingConfig(),
)
EDIT = QuotaEdit("quota0000001", "arn:aws:iam::111122223333:user/ana", NOON, "UpdateComputeQuota")


class Lockable:
    """A store, and a way to hold its lock as the state machine does."""

    def __init__(self, store: StateStore, raw: Any) -> None:
        self.store = store
        self._raw = raw

    def take(self, owner: str, token: int, seconds: float = 900) -> None:
        expires = int(NOON.timestamp() + seconds)
        if isinstance(self.store, InMemoryState):
            self.store.lock[CLUSTER_ARN] = (owner, token, expires)
            return
        self._raw.update_item(
            Key={"pk": f"CLUSTER#{CLUSTER_ARN}", "sk": "STATE"},
            UpdateExpression="SET lockOwner = :o, lockExpires = :e, fencingToken = :t",
            ExpressionAttributeValues={":o": owner, ":e": expires, ":t": token},
        )

    def ask(self, owner: str) -> None:
        until = int(NOON.timestamp()) + 3600
        if isinstance(self.store, InMemoryState):
            self.store.asked[CLUSTER_ARN] = (owner, until)
            return
        self._raw.update_item(
            Key={"pk": f"CLUSTER#{CLUSTER_ARN}", "sk": "STATE"},
            UpdateExpression="SET askedBy = :o, askedUntil = :u",
            ExpressionAttributeValues={":o": owner, ":u": until},
        )


@pytest.fixture(params=["memory", "dynamodb"])
def lockable(request: pytest.FixtureRequest) -> Iterator[Lockable]:
    if request.param == "memory":
        yield Lockable(InMemoryState(), None)
        return
    with mock_aws():
        table = governance_table()
        yield Lockable(Table(table), table)


@pytest.fixture
def store(lockable: Lockable) -> StateStore:
    return lockable.store


def test_each_mark_adds_one_to_the_generation(store: StateStore) -> None:
    assert store.generation(CLUSTER_ARN) == 0
    assert store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON).generation == 1
    assert store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON).generation == 2
    assert (store.generation(CLUSTER_ARN), store.generation(OTHER_ARN)) == (2, 0)


def test_a_mark_shows_whether_a_run_holds_the_lock(lockable: Lockable) -> None:
    assert not lockable.store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON).locked
    lockable.take("run-1", token=1)
    assert lockable.store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON).locked


def test_a_lock_that_ran_out_is_no_lock(lockable: Lockable) -> None:
    lockable.take("run-1", token=1, seconds=-1)
    assert not lockable.store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON).locked


def test_only_the_holder_with_its_own_token_has_the_lock(lockable: Lockable) -> None:
    lockable.take("run-2", token=7)
    lockable.store.hold_lock(CLUSTER_ARN, "run-2", 7, NOON)
    for owner, token in (("run-1", 7), ("run-2", 6)):
        with pytest.raises(LockLostError):
            lockable.store.hold_lock(CLUSTER_ARN, owner, token, NOON)


def test_the_plan_that_a_holder_began_is_kept_beside_its_lock_and_not_beside_the_next(lockable: Lockable) -> None:
    plan = Pointer(bucket="bucket", key="plans/ml-cluster/plan-1/abc.json", sha256="0" * 64)
    lockable.take("run-1", token=1)
    assert lockable.store.lock_of(CLUSTER_ARN).plan is None
    lockable.store.hold_lock(CLUSTER_ARN, "run-1", 1, NOON, plan)
    lockable.store.hold_lock(CLUSTER_ARN, "run-1", 1, NOON)
    assert lockable.store.lock_of(CLUSTER_ARN).plan == plan
    lockable.take("run-2", token=2)
    assert lockable.store.lock_of(CLUSTER_ARN).plan is None


def test_holding_the_lock_extends_the_lease_to_five_minutes_from_now(lockable: Lockable) -> None:
    lockable.take("run-1", token=1, seconds=10)
    later = NOON + timedelta(seconds=8)
    lockable.store.hold_lock(CLUSTER_ARN, "run-1", 1, later)
    for seconds, locked in ((299, True), (300, False)):
        moment = later + timedelta(seconds=seconds)
        assert lockable.store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, moment).locked is locked


def test_a_lease_that_was_ended_is_not_extended_by_a_function_that_works_on(lockable: Lockable) -> None:
    lockable.take("run-1", token=1)
    assert lockable.store.end_lease(CLUSTER_ARN, lockable.store.lock_of(CLUSTER_ARN))
    with pytest.raises(LockLostError, match="run-1"):
        lockable.store.hold_lock(CLUSTER_ARN, "run-1", 1, NOON)
    assert not lockable.store.lock_of(CLUSTER_ARN).is_held(NOON)


def test_who_lost_the_lock_does_not_extend_the_lease_of_its_holder(lockable: Lockable) -> None:
    lockable.take("run-2", token=2, seconds=10)
    with pytest.raises(LockLostError, match="run-1"):
        lockable.store.hold_lock(CLUSTER_ARN, "run-1", 1, NOON)
    later = NOON + timedelta(seconds=11)
    assert not lockable.store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, later).locked


def test_nobody_holds_the_lock_of_a_cluster_that_was_never_seen(store: StateStore) -> None:
    with pytest.raises(LockLostError):
        store.hold_lock(CLUSTER_ARN, "run-1", 1, NOON)


def test_a_quota_leads_to_its_cluster(store: StateStore) -> None:
    assert store.cluster_of("quota0000001") is None
    store.remember_resources(CLUSTER_ARN, ["quota0000001", "quota0000002"])
    store.remember_resources(CLUSTER_ARN, ["quota0000001"])
    assert store.cluster_of("quota0000001") == CLUSTER_ARN
    assert store.cluster_of("quota0000003") is None


def test_owners_are_asked_for_a_hundred_at_a_time_and_unchanged_ones_are_not_written() -> None:
    names = [f"quota{number:07}" for number in range(1000)]
    with mock_aws():
        store = Table(governance_table())
        calls: list[str] = []
        store._table.meta.client.meta.events.register(
            "before-call.dynamodb", lambda model, **_: calls.append(model.name)
        )
        store.remember_resources(CLUSTER_ARN, names[:250])
        assert Counter(calls) == {"BatchGetItem": 3, "PutItem": 250}
        calls.clear()
        store.remember_resources(CLUSTER_ARN, names[:250])
        assert Counter(calls) == {"BatchGetItem": 3}
        calls.clear()
        store.remember_resources(OTHER_ARN, names[:1])
        assert Counter(calls) == {"GetItem": 1, "PutItem": 1}
        assert store.cluster_of(names[0]) == OTHER_ARN


@pytest.mark.parametrize("teams", [50, 100, 250])
def test_the_records_of_all_quotas_are_read_in_a_query_for_each_hundred(teams: int) -> None:
    """Each has 15 rows, and had five other configs in the last month."""

    def rows(count: int) -> ComputeQuotaConfig:
        types = (f"ml.p5en.{row}xlarge" for row in range(15))
        resources = (
            ComputeQuotaResource(instance_type=name, count=count, v_cpu=96, memory_in_gi_b=512) for name in types
        )
        return ComputeQuotaConfig(compute_quota_resources=tuple(resources))

    past = tuple(PastQuota(NOON - timedelta(days=number), rows(number)) for number in range(1, 6))
    with mock_aws():
        store = Table(governance_table())
        for number in range(teams):
            name = f"quota{number:07}"
            store.record_applied(CLUSTER_ARN, replace(APPLIED, compute_quota_id=name, config=rows(9), history=past))
        calls: list[str] = []
        store._table.meta.client.meta.events.register(
            "before-call.dynamodb", lambda model, **_: calls.append(model.name)
        )
        assert len(store.applied_quotas(CLUSTER_ARN)) == teams
        assert set(calls) == {"Query"}
        assert len(calls) <= ceil(teams / 100)


def test_what_was_applied_last_is_what_is_recorded(store: StateStore) -> None:
    newer = replace(APPLIED, version=4, plan_id="plan-2")
    another = replace(APPLIED, compute_quota_id="quota0000002")
    for applied in (another, APPLIED, newer):
        store.record_applied(CLUSTER_ARN, applied)
    assert store.applied_quotas(CLUSTER_ARN) == (newer, another)
    assert store.applied_quotas(OTHER_ARN) == ()
    assert store.applied_quota(CLUSTER_ARN, "quota0000001") == newer
    assert store.applied_quota(OTHER_ARN, "quota0000001") is None


def test_what_was_last_written_to_the_cluster_policy_is_recorded(store: StateStore) -> None:
    assert store.applied_policy(CLUSTER_ARN) is None
    config = SchedulerConfig.model_validate({"FairShare": "Enabled"})
    for version in (1, 2):
        store.record_policy(CLUSTER_ARN, AppliedPolicy("scheduler001", version, config, "plan-1", NOON))
    assert store.applied_policy(CLUSTER_ARN) == AppliedPolicy("scheduler001", 2, config, "plan-1", NOON)
    assert store.applied_quotas(CLUSTER_ARN) == ()


def test_what_was_refused_last_is_what_is_recorded_of_a_subject(store: StateStore) -> None:
    newer = replace(REFUSED, version=4, error=RefusalError.FAILED_TO_SETTLE)
    policy = replace(REFUSED, subject="cluster policy", team="", kind="create-scheduler-config", resource_id=None)
    for refused in (REFUSED, policy, newer):
        store.record_refusal(CLUSTER_ARN, refused)
    assert store.refusals(CLUSTER_ARN) == (policy, newer)
    assert store.refusals(OTHER_ARN) == ()


def test_a_refusal_that_was_forgotten_is_gone(store: StateStore) -> None:
    store.record_refusal(CLUSTER_ARN, REFUSED)
    store.forget_refusal(CLUSTER_ARN, "team-b/gpus")
    store.forget_refusal(OTHER_ARN, REFUSED.subject)
    assert store.refusals(CLUSTER_ARN) == (REFUSED,)
    store.forget_refusal(CLUSTER_ARN, REFUSED.subject)
    assert store.refusals(CLUSTER_ARN) == ()


def test_the_identity_of_the_records_is_kept_and_a_late_write_does_not_take_it_back(store: StateStore) -> None:
    assert store.stamp(CLUSTER_ARN) is None
    first = StateStamp("own", 1, NOON)
    restored = RestoredState(Loss.TABLE_BEHIND, NOON, "the table is at 1, the bucket at 4", "v1", ("team-a",))
    later = StateStamp("own", 5, NOON + timedelta(hours=1), restored)
    for stamp in (first, later, first):
        store.record_stamp(CLUSTER_ARN, stamp)
    assert store.stamp(CLUSTER_ARN) == later
    assert store.stamp(OTHER_ARN) is None
    adopted = StateStamp("another", 2, NOON)
    store.record_stamp(CLUSTER_ARN, adopted)
    assert store.stamp(CLUSTER_ARN) == adopted


def test_no_lineage_is_given_twice(store: StateStore) -> None:
    assert store.new_lineage() != store.new_lineage()


def test_an_edit_that_arrives_late_does_not_replace_a_newer_one(store: StateStore) -> None:
    older = QuotaEdit("quota0000001", "bo", NOON - timedelta(minutes=1), "UpdateComputeQuota")
    store.record_edit(CLUSTER_ARN, EDIT)
    store.record_edit(CLUSTER_ARN, older)
    assert store.edits(CLUSTER_ARN) == (EDIT,)


@pytest.mark.parametrize(
    ("edit", "expires"),
    [
        (EDIT, True),
        (replace(EDIT, tool="Terraform"), False),
        (replace(EDIT, tool="Terraform", event_name="DeleteComputeQuota"), True),
    ],
    ids=["a person's", "a tool's", "a quota that is gone"],
)
def test_what_a_tool_changed_last_is_known_as_long_as_there_is_the_quota(edit: QuotaEdit, expires: bool) -> None:
    with mock_aws():
        raw = governance_table()
        Table(raw).record_edit(CLUSTER_ARN, replace(EDIT, at=NOON - timedelta(days=1)))
        Table(raw).record_edit(CLUSTER_ARN, edit)
        [item] = raw.scan()["Items"]
        assert ("expiresAt" in item) is expires


def test_an_edit_keeps_the_tool_that_made_it_until_a_person_edits(store: StateStore) -> None:
    by_tool = replace(EDIT, tool="Terraform")
    store.record_edit(CLUSTER_ARN, by_tool)
    assert store.edits(CLUSTER_ARN) == (by_tool,)
    store.record_edit(CLUSTER_ARN, EDIT)
    assert store.edits(CLUSTER_ARN) == (EDIT,)


def test_an_identity_is_counted_once_for_each_cluster(store: StateStore) -> None:
    runs = ((CLUSTER_ARN, "run-1"), (CLUSTER_ARN, "run-2"), (OTHER_ARN, "run-2"))
    assert [store.count_once(arn, "uid-1", NOON, by=run) for arn, run in runs] == [True, False, True]


def test_who_counted_an_identity_may_ask_again_since_the_answer_may_have_been_lost(store: StateStore) -> None:
    assert [store.count_once(CLUSTER_ARN, "uid-1", NOON, by=run) for run in ("a", "a", "b", "a")] == [
        True,
        True,
        False,
        True,
    ]


def test_what_was_confirmed_is_not_counted_again_by_who_counted_it(store: StateStore) -> None:
    assert store.count_once(CLUSTER_ARN, "uid-1", NOON, by="a")
    store.confirm_once(CLUSTER_ARN, "uid-1", NOON)
    assert [store.count_once(CLUSTER_ARN, "uid-1", NOON, by=run) for run in ("a", "b")] == [False, False]
    assert store.was_counted(CLUSTER_ARN, "uid-1")


def test_what_was_counted_and_not_done_is_counted_by_the_next_caller(store: StateStore) -> None:
    assert store.count_once(CLUSTER_ARN, "uid-1", NOON, by="a")
    store.reopen_once(CLUSTER_ARN, "uid-1", NOON)
    assert [store.count_once(CLUSTER_ARN, "uid-1", NOON, by=run) for run in ("b", "a", "b")] == [True, False, True]


def test_what_was_counted_can_be_asked_without_counting(store: StateStore) -> None:
    assert not store.was_counted(CLUSTER_ARN, "uid-1")
    assert store.count_once(CLUSTER_ARN, "uid-1", NOON)
    assert store.was_counted(CLUSTER_ARN, "uid-1")
    assert not store.was_counted(OTHER_ARN, "uid-1")


def test_what_was_counted_is_found_by_how_it_begins(store: StateStore) -> None:
    for identity in ("told-b#1", "told-a", "a"):
        assert store.count_once(CLUSTER_ARN, identity, NOON)
    assert store.count_once(OTHER_ARN, "told-c", NOON)
    assert store.all_counted(CLUSTER_ARN, "told-") == {"told-a", "told-b#1"}


def test_an_identity_that_was_forgotten_counts_again(store: StateStore) -> None:
    assert store.count_once(CLUSTER_ARN, "uid-1", NOON)
    assert not store.count_once(CLUSTER_ARN, "uid-1", NOON)
    store.forget_once(CLUSTER_ARN, "uid-1")
    store.forget_once(CLUSTER_ARN, "never-counted")
    assert store.count_once(CLUSTER_ARN, "uid-1", NOON)


def test_the_stop_switch_is_off_until_somebody_sets_it(store: StateStore) -> None:
    assert store.stop_switch() is False


def test_a_run_leaves_a_record() -> None:
    with mock_aws():
        table = governance_table()
        record = RunRecord(
            CLUSTER_ARN, "run-1", NOON, NOON + timedelta(seconds=4), "applied", CAUSE, None, "plan-1", 2, None, SEEN
        )
        Table(table).record_run(record)
        (item,) = table.scan()["Items"]
    assert item["sk"] == "RUN#2026-11-20T12:00:00+00:00#run-1"
    assert (item["outcome"], item["applied"], item["planId"]) == ("applied", 2, "plan-1")
    assert "error" not in item
    assert Pointer.model_validate_json(str(item["snapshot"])) == SEEN


def test_a_stop_switch_that_cannot_be_read_is_neither_on_nor_off() -> None:
    with mock_aws():
        missing = Table(boto3.resource("dynamodb").Table("no-such-table"))
        assert missing.stop_switch() is None


def test_items_go_by_themselves_after_as_long_as_the_page_of_the_stores_says() -> None:
    with mock_aws():
        parts = ("pk", "sk")
        raw = boto3.resource("dynamodb").create_table(
            TableName="governance",
            KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in parts],
            BillingMode="PAY_PER_REQUEST",
        )
        table = Table(raw)
        table.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON)
        table.record_edit(CLUSTER_ARN, EDIT)
        table.record_refusal(CLUSTER_ARN, replace(REFUSED, at=NOON))
        table.count_once(CLUSTER_ARN, "uid-1", NOON)
        table.record_run(RunRecord(CLUSTER_ARN, "run-1", NOON, NOON, "applied", CAUSE, None, "plan-1", 2, None, SEEN))
        table.record_applied(CLUSTER_ARN, APPLIED)
        items: list[dict[str, Any]] = raw.scan()["Items"]
    ends = {item["sk"].partition("#")[0]: item.get("expiresAt") for item in items}
    days = {kind: None if end is None else (int(end) - NOON.timestamp()) / 86400 for kind, end in ends.items()}
    assert days == {"STATE": 400, "EDIT": 400, "REFUSED": 2, "ONCE": 30, "RUN": 400, "QUOTA": None}


def test_a_list_of_more_than_a_page_is_read_to_its_end() -> None:
    pages: list[dict[str, Any]] = [
        {"Items": [{"pk": f"CLUSTER#{CLUSTER_ARN}", **_edit_item("q1")}], "LastEvaluatedKey": {"sk": "EDIT#q1"}},
        {"Items": [{"pk": f"CLUSTER#{CLUSTER_ARN}", **_edit_item("q2")}]},
    ]
    asked: list[dict[str, Any]] = []

    class PagedTable:
        def query(self, **given: Any) -> dict[str, Any]:
            asked.append(given)
            return pages[len(asked) - 1]

    edits = Table(cast("Any", PagedTable())).edits(CLUSTER_ARN)
    assert [edit.compute_quota_id for edit in edits] == ["q1", "q2"]
    assert [given.get("ExclusiveStartKey") for given in asked] == [None, {"sk": "EDIT#q1"}]
    assert all(given["ConsistentRead"] for given in asked)


def _edit_item(quota_id: str) -> dict[str, Any]:
    return {"sk": f"EDIT#{quota_id}", "by": "ana", "at": NOON.isoformat(), "eventName": "UpdateComputeQuota"}


class OddTable:
    """Answers every query with one item."""

    def __init__(self, item: dict[str, Any]) -> None:
        self.item = {"pk": f"CLUSTER#{CLUSTER_ARN}", **item}

    def query(self, **_: Any) -> dict[str, Any]:
        return {"Items": [self.item]}

    def get_item(self, **_: Any) -> dict[str, Any]:
        return {"Item": self.item}


def test_a_record_or_number_that_cannot_be_read_is_an_error_of_the_table() -> None:
    table = Table(cast("Any", OddTable({"sk": "QUOTA#quota0000001", "generation": "x"})))
    with pytest.raises(UpstreamError, match="QUOTA#quota0000001"):
        table.applied_quotas(CLUSTER_ARN)
    with pytest.raises(UpstreamError, match="generation is 'x', which is not a whole number"):
        table.generation(CLUSTER_ARN)


def test_the_lock_says_who_holds_it_with_which_token_and_until_when(lockable: Lockable) -> None:
    assert lockable.store.lock_of(CLUSTER_ARN) == Lock()
    lockable.take("run-1", token=3, seconds=10)
    lock = lockable.store.lock_of(CLUSTER_ARN)
    assert lock == Lock("run-1", 3, int(NOON.timestamp()) + 10)
    assert lockable.store.mark_dirty(CLUSTER_ARN, "ml-cluster", CAUSE, NOON).lock == lock


def test_a_lease_is_ended_only_for_the_owner_and_token_that_were_seen(lockable: Lockable) -> None:
    lockable.take("run-1", token=3)
    assert not lockable.store.end_lease(CLUSTER_ARN, Lock("run-1", 2))
    assert not lockable.store.end_lease(CLUSTER_ARN, Lock("run-2", 3))
    assert lockable.store.lock_of(CLUSTER_ARN).is_held(NOON)
    assert lockable.store.end_lease(CLUSTER_ARN, Lock("run-1", 3))
    assert lockable.store.lock_of(CLUSTER_ARN) == Lock("run-1", 3, 0)
    assert lockable.store.end_lease(CLUSTER_ARN, Lock("run-1", 3)), "asked again, it is the same"


def test_a_redriven_execution_finds_its_token_stale_once_another_run_took_the_lock(lockable: Lockable) -> None:
    lockable.take("run-1", token=3)
    lockable.store.end_lease(CLUSTER_ARN, Lock("run-1", 3))
    lockable.take("run-2", token=4)
    with pytest.raises(LockLostError):
        lockable.store.hold_lock(CLUSTER_ARN, "run-1", 3, NOON)
    lockable.take("run-1", token=5)  # redriven as a whole, it took the lock anew; what it remembered is stale
    with pytest.raises(LockLostError):
        lockable.store.hold_lock(CLUSTER_ARN, "run-1", 3, NOON)


def test_a_request_is_withdrawn_only_for_the_execution_that_asks(lockable: Lockable) -> None:
    lockable.ask("run-1")
    assert not lockable.store.withdraw_request(CLUSTER_ARN, "run-2")
    assert lockable.store.lock_of(CLUSTER_ARN).asked_until
    assert lockable.store.withdraw_request(CLUSTER_ARN, "run-1")
    assert lockable.store.lock_of(CLUSTER_ARN) == Lock(asked_by="run-1", asked_until=0)


def test_the_last_run_is_the_one_whose_record_is_the_newest(store: StateStore) -> None:
    assert store.last_run(CLUSTER_ARN) is None
    for minute, run in ((1, "run-1"), (3, "run#3"), (2, "run-2")):
        at = NOON + timedelta(minutes=minute)
        end = at + timedelta(seconds=4)
        store.record_run(RunRecord(CLUSTER_ARN, run, at, end, "applied", CAUSE, None, "plan-1", 2, None))
    assert store.last_run(CLUSTER_ARN) == ("run#3", NOON + timedelta(minutes=3, seconds=4))
    assert store.last_run(OTHER_ARN) is None


@pytest.mark.parametrize(
    ("lock", "held", "old"),
    [
        (Lock(), False, False),
        (Lock("run-1", 1, None), False, True),
        (Lock("run-1", 1, int(NOON.timestamp()) + 300), True, False),
        (Lock("run-1", 1, int(NOON.timestamp()) + 181), True, False),
        (Lock("run-1", 1, int(NOON.timestamp()) + 180), True, True),
        (Lock("run-1", 1, int(NOON.timestamp())), False, True),
    ],
)
def test_an_owner_looks_old_two_minutes_after_it_renewed_its_lock(lock: Lock, held: bool, old: bool) -> None:
    assert (lock.is_held(NOON), lock.looks_old(NOON)) == (held, old)


def test_the_last_look_at_a_cluster_is_kept(lockable: Lockable) -> None:
    store = lockable.store
    assert store.last_look(CLUSTER_ARN) is None
    for minutes in (0, 5):
        store.record_look(CLUSTER_ARN, NOON + timedelta(minutes=minutes))
    assert (store.last_look(CLUSTER_ARN), store.last_look(OTHER_ARN)) == (NOON + timedelta(minutes=5), None)


def test_a_look_that_cannot_be_read_is_an_error_that_names_the_item() -> None:
    table = Table(cast("Any", OddTable({"sk": "LOOK", "at": "yesterday"})))
    with pytest.raises(UpstreamError, match=r"LOOK.*yesterday"):
        table.last_look(CLUSTER_ARN)


def test_a_record_of_a_run_that_cannot_be_read_is_named_or_left_out() -> None:
    found: list[UnreadableItem] = []
    table = Table(cast("Any", OddTable({"sk": "RUN#2026-11-20T12:00:00+00:00#run-1"})))
    with pytest.raises(UpstreamError, match=r"RUN#.*endedAt"):
        table.last_run(CLUSTER_ARN)
    assert table.last_run(CLUSTER_ARN, found.append) is None
    assert len(found) == 1


def test_one_at_a_time_has_the_turn_to_notify_and_a_dead_one_loses_it(store: StateStore) -> None:
    first = store.take_turn(CLUSTER_ARN, NOON)
    assert first is not None
    assert store.take_turn(CLUSTER_ARN, NOON + timedelta(seconds=TURN_SECONDS - 1)) is None
    assert store.take_turn(OTHER_ARN, NOON) is not None
    second = store.take_turn(CLUSTER_ARN, NOON + timedelta(seconds=TURN_SECONDS))
    assert second not in {None, first}
    store.end_turn(CLUSTER_ARN, first)  # it was not dead after all, and too late
    assert store.take_turn(CLUSTER_ARN, NOON + timedelta(seconds=TURN_SECONDS + 1)) is None
    assert second is not None
    store.end_turn(CLUSTER_ARN, second)
    assert store.take_turn(CLUSTER_ARN, NOON + timedelta(seconds=TURN_SECONDS + 1)) is not None
