"""The state machine takes, keeps and releases the lock by the expressions that functions and commands use."""

from typing import Any

import pytest

from taskgov import keys
from taskgov.adapters import lock
from taskgov.adapters.items import NEWEST
from taskgov.ports import LOCK_SECONDS
from tests.statemachines.machines import definition

STATES: dict[str, dict[str, Any]] = definition("reconcile")["States"]
TAKE = STATES["Take the lock"]["Arguments"]
EXCHANGE = STATES["Exchange the request for the lock"]["Arguments"]
ON_TABLE = {name: state["Arguments"] for name, state in STATES.items() if ":dynamodb:" in state.get("Resource", "")}
CLUSTER, PLAN = "{% '" + keys.CLUSTER + "' & $clusterArn %}", "{% '" + keys.APPROVAL + "' & $planId %}"


def test_it_is_taken_as_a_command_takes_it() -> None:
    assert TAKE["UpdateExpression"] == lock.TAKE
    own = "attribute_not_exists(askedBy) OR askedBy <> :me"
    assert TAKE["ConditionExpression"].strip() == f"({lock.FREE_OR_EXPIRED}) AND ({own})"


def test_a_request_is_exchanged_for_the_lock_where_another_could_take_it() -> None:
    assert "lockOwner = :me, lockExpires = :expires" in EXCHANGE["UpdateExpression"]
    assert EXCHANGE["UpdateExpression"].endswith("ADD fencingToken :one")
    free = lock.FREE_OR_EXPIRED.replace(" OR lockOwner = :me", "")
    assert EXCHANGE["ConditionExpression"] == f"askedBy = :me AND ({free})"
    assert EXCHANGE["ExpressionAttributeValues"][":expires"] == TAKE["ExpressionAttributeValues"][":expires"]


def test_it_is_taken_for_as_long_as_a_function_renews_it_and_in_the_newest_form_of_items() -> None:
    assert TAKE["ExpressionAttributeValues"][":expires"]["N"].endswith(f"/ 1000) + {LOCK_SECONDS}) %}}")
    assert TAKE["ExpressionAttributeValues"][":schema"] == {"N": str(NEWEST)}


@pytest.mark.parametrize("name", ["Release the lock", "Let go of the lock", "Set the lock aside"])
def test_it_is_released_by_its_owner_alone(name: str) -> None:
    assert STATES[name]["Arguments"]["UpdateExpression"].endswith(lock.RELEASE)
    assert "lockOwner = :me" in STATES[name]["Arguments"]["ConditionExpression"]
    assert "lockOwner = :me" in lock.HELD


@pytest.mark.parametrize("name", ON_TABLE)
def test_every_item_has_the_key_that_the_code_gives_it(name: str) -> None:
    key = ON_TABLE[name].get("Key") or {part: ON_TABLE[name]["Item"][part] for part in ("pk", "sk")}
    if name == "Ask for approval":
        assert key == {"pk": {"S": "{% '" + keys.APPROVAL + "' & $clusterArn %}"}, "sk": {"S": PLAN}}
    elif name == "Keep the record":
        assert key["pk"] == {"S": CLUSTER}
        assert f"'{keys.RUN}' & " in key["sk"]["S"]
    else:
        assert key == {"pk": {"S": CLUSTER}, "sk": {"S": keys.STATE}}


def test_every_state_that_reads_or_writes_the_table_is_tested_here() -> None:
    assert len(ON_TABLE) == 11
