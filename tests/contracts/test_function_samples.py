"""The samples of what each function takes fit the contracts, so that `sam local invoke` gets what production sends."""

import json
from pathlib import Path
from typing import Any

import pytest

from taskgov.contracts.events import Hint, parse_event
from taskgov.contracts.orders import StopOrder, caller_of, order_of
from taskgov.contracts.steps import (
    ApplyChangeRequest,
    AuditClusterRequest,
    EstimateStartsRequest,
    PlanQuotasRequest,
    PublishUsageRequest,
    ReadSnapshotRequest,
    StepModel,
    VerifyPlanRequest,
)
from taskgov.errors import InvalidRequestError

EVENTS = Path(__file__).parents[2] / "events"
MODELS: dict[str, type[StepModel]] = {
    "read_snapshot": ReadSnapshotRequest,
    "plan_quotas": PlanQuotasRequest,
    "apply_change": ApplyChangeRequest,
    "verify_plan": VerifyPlanRequest,
    "publish_usage": PublishUsageRequest,
    "publish_usage.all": PublishUsageRequest,
    "audit_cluster": AuditClusterRequest,
    "estimate_starts": EstimateStartsRequest,
}


def sample(name: str) -> Any:
    return json.loads((EVENTS / f"{name}.json").read_text())


@pytest.mark.parametrize("name", MODELS)
def test_a_functions_sample_fits_its_contract_and_nothing_is_lost(name: str) -> None:
    given = sample(name)

    assert given.items() <= MODELS[name].parse(given).to_json().items()


@pytest.mark.parametrize("name", MODELS)
def test_half_of_a_surrogate_pair_is_refused_before_anything_is_done(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="half of a surrogate pair is not text"):
        MODELS[name].parse(sample(name) | {"runId": "\ud800"})


def test_the_intake_sample_holds_events_that_can_be_read() -> None:
    bodies = [json.loads(record["body"]) for record in sample("receive_event.sqs")["Records"]]

    hints = [parse_event(body, own_role_arn="") for body in bodies]

    assert [type(hint) for hint in hints] == [Hint, Hint]


def test_the_entrys_sample_holds_an_order_and_its_caller() -> None:
    event = sample("take_order")
    assert order_of(event) == StopOrder(action="stop", reason="node maintenance")
    assert caller_of(event) == "arn:aws:sts::111122223333:assumed-role/Operators/ana"


def test_there_is_a_sample_for_every_function() -> None:
    functions = {path.name for path in (EVENTS.parent / "functions").iterdir() if (path / "app.py").exists()}

    assert functions - {name.partition(".")[0] for name in (*MODELS, "receive_event.sqs", "take_order")} == set()


def test_samples_belong_to_nobodys_account() -> None:
    import re

    for path in EVENTS.glob("*.json"):
        assert set(re.findall(r"(?<![0-9a-z-])[0-9]{12}(?![0-9a-z])", path.read_text())) <= {"111122223333"}, path.name
