"""The state machines' data gets a key of the stack in place, over the form that had none; a run waits meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from taskgov_embedded.walkthrough.world import World
from tests.deployment.releases import release_without_execution_key
from tests.deployment.test_upgrade import WALKTHROUGH, Upgraded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov_embedded.stack import Stack

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Upgraded]:
    before = release_without_execution_key(tmp_path_factory.mktemp("keyless"))
    with World(WALKTHROUGH, before) as world:
        assert _keys(world.stack) == {}
        yield Upgraded(world)


def test_the_state_machines_stay_and_get_the_key(keyed: Upgraded) -> None:
    assert keyed.failed is None
    key = keyed.stack.place.arn("kms", f"key/{keyed.stack.physical('ExecutionKey')}")
    machines = [keyed.stack.physical(name) for name in ("ReconcileStateMachine", "AuditStateMachine")]
    assert _keys(keyed.stack) == dict.fromkeys(machines, key)
    assert keyed.executions("RUNNING") == keyed.running != []


def test_the_run_that_waited_ends_well(keyed: Upgraded) -> None:
    keyed.do({"approve": True})
    keyed.do({"waitMinutes": 2})
    client = keyed.stack.client("stepfunctions")
    assert client.describe_execution(executionArn=keyed.running[0])["status"] == "SUCCEEDED"
    assert keyed.world.quotas()["team-a"] == ({"InstanceType": "ml.g5.8xlarge", "Count": 2},)


def test_the_next_run_uses_the_key_and_its_role_may(keyed: Upgraded) -> None:
    before = len(keyed.executions("SUCCEEDED"))
    keyed.do({"reconcile": True})
    keyed.do({"waitMinutes": 2})
    assert len(keyed.executions("SUCCEEDED")) > before
    assert (keyed.executions("FAILED"), keyed.stack.timeline.of("denied")) == ([], [])


def _keys(stack: Stack) -> dict[str, str]:
    """Return the key of each state machine's data, as the account knows it."""
    return {arn: key for arn, key in stack.place.kms_keys.items() if ":stateMachine:" in arn}
