"""Proof that the checks of walkthroughs can fail; a module of its own, because its world stays open."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import pytest

from taskgov_embedded.walkthrough.checks import CHECKS
from taskgov_embedded.walkthrough.expectations import Expectations
from taskgov_embedded.walkthrough.model import all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from taskgov_embedded.walkthrough.step_result import StepResult
from taskgov_embedded.walkthrough.world import World


@pytest.fixture(scope="module")
def first_steps() -> Iterator[tuple[World, list[StepResult]]]:
    """The first walkthrough up to its second step, where team A borrows; the world stays open."""
    walkthrough = load(all_files()[0])
    with World(walkthrough) as world:
        runner = Runner(walkthrough.model_copy(update={"steps": walkthrough.steps[:2]}), world)
        yield world, list(runner.run())


WRONG: dict[str, Any] = {
    "jobs": {"team-a/imagenet-gpu-team-a-1": "Suspended"},
    "pods": {"team-a/imagenet-gpu-team-a-1": {"Running": 2}},
    "usage": [{"team": "team-a", "flavor": "ml.g5.8xlarge", "borrowed": {"nvidia.com/gpu": 2}}],
    "workloads": [{"team": "team-a", "rows": []}],
    "conditions": [
        {
            "team": "team-a",
            "job": "imagenet-gpu-team-a-1",
            "conditions": [{"type": "Admitted", "status": "False", "reason": "Admitted", "message": "*"}],
        }
    ],
    "queues": [{"team": "team-a", "holds": {"spec.queueingStrategy": "StrictFIFO"}}],
    "preemptions": [{"victim": "team-a/imagenet-gpu-team-a-1", "by": "team-b", "reason": "InClusterQueue"}],
    "priorities": {"team-a/imagenet-gpu-team-a-1": 71},
    "admittedInOrder": ["team-a/imagenet-gpu-team-a-1", "team-a/etcd-gpu"],
    "quotas": [{"team": "team-a", "resources": [{"InstanceType": "ml.g5.8xlarge", "Count": 3}]}],
    "plan": {"outcome": "apply"},
    "runs": [{"machine": "audit"}],
    "metrics": [
        {
            "name": "Borrowed",
            "team": "team-a",
            "instanceType": "ml.g5.8xlarge",
            "resource": "nvidia.com/gpu",
            "value": 2,
        }
    ],
    "published": ["Quota Changes Applied"],
    "notices": ["anything"],
    "teamNotices": [{"topic": "taskgov-team-a", "says": ["anything"]}],
    "leases": [{"to": "team-a", "from": "team-b", "count": 1, "state": "active"}],
    "deadLetters": 1,
    "ignored": 7,
    "writes": 1,
    "report": {"findings": []},
}


def test_there_is_a_wrong_expectation_of_every_kind() -> None:
    assert set(Expectations.model_validate(WRONG).model_fields_set) == set(Expectations.model_fields)


@pytest.mark.parametrize("member", sorted(WRONG))
def test_a_wrong_expectation_fails_and_says_what_holds(
    member: str, first_steps: tuple[World, list[StepResult]]
) -> None:
    world, results = first_steps
    expected = Expectations.model_validate({member: WRONG[member]})
    (name,) = expected.model_fields_set
    checks = list(CHECKS[name](getattr(expected, name), results[1], world))
    failed = [check for check in checks if not check.passed]
    assert failed
    assert all(check.what and check.wanted != check.got for check in failed)


def test_a_step_result_keeps_what_led_to_it(first_steps: tuple[World, list[StepResult]]) -> None:
    _, results = first_steps
    kept = {field.name for field in fields(StepResult) if getattr(results[0], field.name)}
    assert {"moments", "calls", "invocations", "plans", "executions", "quotas_after", "checks"} <= kept
