"""Writing 1,000 changes: the plan is parsed once in a process, and requests grow with the changes alone."""

from time import process_time
from typing import Any

import pytest

from taskgov.allocation.codec import plan_from_json, plan_to_json
from taskgov.contracts.steps import Pointer, VerifyPlanRequest
from taskgov.errors import NotFoundError, UpstreamError
from taskgov.services import step_inputs
from taskgov.services.step_inputs import LastPlan
from taskgov.services.verify_plan import VerifyPlan
from tests.support.memory import CLUSTER_ARN, InMemoryDocuments
from tests.support.plans import plan_of, update
from tests.support.writing import CHANGES, PER_CALL, Writing


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sizes of the plans that are parsed."""
    sizes: list[int] = []

    def counting(body: bytes) -> Any:
        sizes.append(len(body))
        return plan_from_json(body)

    monkeypatch.setattr(step_inputs, "plan_from_json", counting)
    return sizes


def test_one_process_parses_the_plan_once_and_requests_grow_with_the_changes_alone(parsed: list[int]) -> None:
    world = Writing()
    one, began = world.process(), process_time()
    calls = world.apply(lambda: one)
    assert calls == CHANGES / PER_CALL
    assert process_time() - began < 10
    assert len(parsed) == 1
    assert dict(sorted(world.calls.items())) == {
        "applied_quota": 2 * CHANGES,
        "cluster_of": CHANGES,
        "get": 1,
        "hold_lock": CHANGES,
        "record_applied": 2 * CHANGES,  # announced, and written
        "refusals": calls,
        "remember_resources": CHANGES,
        "stamp": calls,
        "update_quota": CHANGES,
    }

    world.calls.clear()
    parsed.clear()
    look = VerifyPlan(world.backends, world.documents, world.state, world.clock, LastPlan())
    for _ in range(3):
        assert look(VerifyPlanRequest(cluster_arn=CLUSTER_ARN, plan=world.plan, next=CHANGES)).settled
    assert (world.calls["get"], len(parsed)) == (1, 1)
    assert world.calls["quotas"] == 3
    assert sum(world.calls.values()) < 20, "looking asks for lists, and for no change by itself"


def test_a_new_process_for_each_call_parses_it_once_a_call_and_not_once_a_change(parsed: list[int]) -> None:
    world = Writing(100)
    assert world.apply(world.process) == len(parsed) == world.calls["get"] == 100 / PER_CALL


def test_another_plan_is_read_anew_and_one_that_is_gone_is_no_old_one() -> None:
    documents, read = InMemoryDocuments(), LastPlan()
    bodies = [plan_to_json(plan_of(update(0, team, "quota0000000", 2, 1))) for team in ("team-a", "team-b")]
    first, second = (documents.put("plans/x.json", body, "application/json") for body in bodies)
    assert read(documents, second).changes[0].team == "team-b"
    with pytest.raises(UpstreamError, match="has changed"):
        read(documents, first)  # the place has another plan by now
    documents.put("plans/x.json", bodies[0], "application/json")
    assert read(documents, first).changes[0].team == "team-a"
    with pytest.raises(NotFoundError):
        read(documents, Pointer(bucket=first.bucket, key="plans/gone.json", sha256=first.sha256))
