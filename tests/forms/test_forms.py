"""What the release before camelCase wrote (`before/`, by its own code) is read, and means the same."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from taskgov.adapters.dynamodb import APPLIED, POLICY, REFUSED, STAMP
from taskgov.allocation.codec import changes_sha256, plan_from_json, plan_id_of, plan_to_json, plan_to_store
from taskgov.allocation.plan import Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.refusals import wanted_of
from taskgov.audit.trend import AuditHistory, history_from_json, history_to_json
from taskgov.contracts.steps import PlanQuotasRequest
from taskgov.json_form import JsonForm, KeptForm
from taskgov.services.plan_quotas import PlanQuotas
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_json, snapshot_to_store
from taskgov.snapshot.identity import Loss, RestoredState, StateStamp
from taskgov.snapshot.records import AppliedPolicy
from tests.adapters.test_state_store import APPLIED as WRITTEN
from tests.allocation.test_golden_plans import SCENARIOS
from tests.allocation.work import SCHEDULER
from tests.allocation.world import NOW
from tests.audit.test_trend import DRIFT, IDLE, after_nights
from tests.snapshot.test_codec import full
from tests.support.json_names import member_names
from tests.support.memory import InMemoryDocuments
from tests.support.refusals import REFUSED as REFUSAL

BEFORE = Path(__file__).parent / "before"
PLANS = {
    "approval": ("plan-cbebb398f546fadb", "672bcaa0048934181ccacc6871e1a0bb1a8b25917028a2d43ddbe9f024b5467d"),
    "preemption": ("plan-494968e0e84803a2", "ae13311acc2ca118b8147fa003991c3ca44e7b89957e86fece7a6f801c819cca"),
}
"""The id of each plan, and the digest of its changes, as the release before computed them."""
OF_OTHERS = frozenset(
    {
        "after",
        "before",
        "targetAfter",
        "targetBefore",
        "config",
        "target",
        "kueue",
        "evidence",
        "resources",
    }
)
"""Members whose content AWS or Kubernetes names, or whose keys are data."""


def test_a_snapshot_of_before_is_read() -> None:
    refused = replace(REFUSAL, resource_id="id-team-a", version=1, wanted="digest")
    refused = replace(refused, because="the limit is reached", plan_id="plan-1", at=NOW)
    assert snapshot_from_json((BEFORE / "snapshot.json").read_bytes()) == replace(full(), refusals=(refused,))


def test_a_snapshot_is_stored_as_the_release_before_stores_and_reads_it() -> None:
    """Its functions take part in a run while a deployment moves them, and after it was taken back."""
    stored = (BEFORE / "snapshot.json").read_bytes()
    assert snapshot_to_store(snapshot_from_json(stored)) == _canonical(stored)


def _canonical(text: bytes) -> bytes:
    return json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def test_a_snapshot_is_written_in_camel_case_and_what_others_name_is_left_alone() -> None:
    data = json.loads(snapshot_to_json(full()))
    assert [name for name in member_names(data, OF_OTHERS) if "_" in name] == []
    assert data["takenAt"] == "2026-11-20T12:00:00Z"
    assert data["nodes"][0]["allocatable"] == {"cpu": 7, "nvidia.com/gpu": 1}
    assert data["kueue"] == {"workloads": [{"metadata": {"labels": {"ü": "é"}, "name": "w"}}]}
    assert data["applied"][0]["config"] == {"ComputeQuotaResources": [{"Count": 2, "InstanceType": "ml.g5.8xlarge"}]}
    assert data["policy"]["handEdits"] == "adopt"


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_of_before_is_read_and_is_the_plan_that_is_made_today(name: str) -> None:
    before = plan_from_json((BEFORE / f"plan-{name}.json").read_bytes())
    today = plan_quotas(SCENARIOS[name], mode="apply")
    assert _without_sentences(before) == _without_sentences(today)
    assert plan_from_json(plan_to_json(before)) == before
    assert [wanted_of(change, before.changes) for change in before.changes] == [
        wanted_of(change, today.changes) for change in today.changes
    ]


def _without_sentences(plan: Plan) -> Plan:
    """Leave out the sentences, and the name of a task, which the release before did not keep: others may be used."""
    effects = tuple(replace(effect, because="", task="") for effect in plan.prediction.effects)
    return replace(
        plan,
        allocations=tuple(replace(line, because="") for line in plan.allocations),
        changes=tuple(replace(change, because="") for change in plan.changes),
        prediction=replace(plan.prediction, effects=effects),
        guardrails=tuple(replace(verdict, because="") for verdict in plan.guardrails),
        findings=tuple(replace(finding, because="", remedy="") for finding in plan.findings),
    )


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_stored_as_the_release_before_stores_and_reads_it(name: str) -> None:
    """A person may answer a request for approval through the function of before, when a deployment is taken back."""
    stored = (BEFORE / f"plan-{name}.json").read_bytes()
    assert _without_new(plan_to_store(plan_from_json(stored))) == _canonical(stored)


def _without_new(text: bytes) -> bytes:
    """Leave out the members that the release before does not know: it passes over them."""
    data = json.loads(text)
    assert data["prediction"].pop("may_be_preempted_gpus") == 0
    effects = data["prediction"]["effects"]
    assert [(effect.pop("uncertain"), effect.pop("task")) for effect in effects] == [([], "") for _ in effects]
    return _canonical(json.dumps(data).encode())


def test_what_a_run_stores_is_in_the_form_of_the_release_before() -> None:
    documents = InMemoryDocuments()
    snapshot = documents.put("snapshots/x.json", snapshot_to_store(SCENARIOS["approval"]), "application/json")
    plan = PlanQuotas(documents)(PlanQuotasRequest(snapshot=snapshot, apply_mode="apply", needs_approver=False)).plan
    assert {"cluster_arn", "snapshot_sha256"} < json.loads(documents.get(plan)).keys()


@pytest.mark.parametrize("name", PLANS)
def test_what_was_approved_before_an_upgrade_has_the_same_id_and_digest_after_it(name: str) -> None:
    """An approval names the digest of the changes: another one would have the person asked again."""
    before = plan_from_json((BEFORE / f"plan-{name}.json").read_bytes())
    today = plan_quotas(SCENARIOS[name], mode="apply")
    for plan in (before, today):
        assert (plan.plan_id, changes_sha256(plan)) == PLANS[name]
        assert plan_id_of(plan) == plan.plan_id


@pytest.mark.parametrize("name", PLANS)
def test_a_plan_is_written_in_camel_case(name: str) -> None:
    data = json.loads(plan_to_json(plan_quotas(SCENARIOS[name], mode="apply")))
    assert [member for member in member_names(data, OF_OTHERS) if "_" in member] == []
    assert data["changes"][0]["gpusAfter"] != data["changes"][0]["gpusBefore"]


KEPT: dict[str, tuple[KeptForm[Any], Any]] = {
    "quota": (APPLIED, WRITTEN),
    "policy": (POLICY, AppliedPolicy("config-1", 3, SCHEDULER.scheduler_config, "plan-1", NOW)),
    "refusal": (REFUSED, REFUSAL),
    "stamp": (STAMP, StateStamp("a", 7, NOW, RestoredState(Loss.TABLE_EMPTY, NOW, "why", "v1", ("gpus",)))),
}


@pytest.mark.parametrize("name", KEPT)
def test_a_record_is_read_in_both_forms_and_kept_in_that_of_before(name: str) -> None:
    """A deployment that is taken back leaves its records to the release before."""
    form, value = KEPT[name]
    assert form.read(form.kept(value)) == value
    assert form.read(json.dumps(form.data(value))) == value
    assert any("_" in member for member in member_names(json.loads(form.kept(value)), OF_OTHERS))
    assert [member for member in member_names(form.data(value), OF_OTHERS) if "_" in member] == []


def test_the_history_of_audits_is_read_in_both_forms_and_kept_in_that_of_before() -> None:
    history = after_nights([IDLE], [IDLE, DRIFT])
    assert b'"first_seen"' in history_to_json(history)
    today = json.dumps(JsonForm(AuditHistory).data(history))
    assert '"firstSeen"' in today
    assert history_from_json(today.encode()) == history
