"""The restore drill: the table comes out of a backup, is empty, or is another stack's; the next run takes over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import World

if TYPE_CHECKING:
    from collections.abc import Iterator

    from taskgov.allocation.plan import Plan

pytestmark = pytest.mark.long

TYPE = "ml.g5.8xlarge"
Item = dict[str, Any]


@pytest.fixture
def world() -> Iterator[World]:
    walkthrough = {
        "name": "restored-state",
        "source": "docs/runbooks/restored-state.md",
        "about": "a table out of a backup",
        "mode": "apply",
        "starts": "2026-11-20T09:00:00Z",
        "cluster": {"groups": [{"instanceType": TYPE, "count": 10}]},
        "steps": [{"title": "restored state"}],
    }
    with World(Walkthrough.model_validate(walkthrough)) as opened:
        yield opened


def rows(count: int) -> Item:
    return {"ComputeQuotaResources": [{"InstanceType": TYPE, "Count": count}]}


def govern(world: World, **teams: int) -> None:
    Actor(world)._policy(  # the verb of a walkthrough
        {
            "apiVersion": "taskgov/v1",
            "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
            "teams": [{"name": name, "quota": rows(count)} for name, count in teams.items()],
            "guardrails": {"maxDecreasePercent": 100},
        }
    )
    world.stack.run_until_quiet(1800)


def look(world: World) -> None:
    world.stack.advance(3600, schedules=["ResyncAllSchedule"])
    world.stack.run_until_quiet(1800)


def edit(world: World, team: str, count: int) -> None:
    (quota,) = (
        one for one in world.stack.sagemaker.quotas(world.cluster_arn) if one["ComputeQuotaTarget"]["TeamName"] == team
    )
    world.stack.client("sagemaker", person="ana").update_compute_quota(
        ComputeQuotaId=quota["ComputeQuotaId"],
        TargetVersion=quota["ComputeQuotaVersion"],
        ComputeQuotaConfig=rows(count),
        ComputeQuotaTarget={"TeamName": team},
    )
    world.stack.run_until_quiet(1800)


def backup(world: World) -> list[Item]:
    return list(world.stack.client("dynamodb").scan(TableName=world.stack.physical("GovernanceTable"))["Items"])


def restore(world: World, items: list[Item]) -> None:
    client, name = world.stack.client("dynamodb"), world.stack.physical("GovernanceTable")
    for item in backup(world):
        client.delete_item(TableName=name, Key={key: item[key] for key in ("pk", "sk")})
    for item in items:
        client.put_item(TableName=name, Item=item)


def documents(world: World) -> dict[str, bytes]:
    client, bucket = world.stack.client("s3"), world.stack.physical("GovernanceBucket")
    keys = [one["Key"] for one in client.list_objects_v2(Bucket=bucket)["Contents"]]
    return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def restore_documents(world: World, stored: dict[str, bytes]) -> None:
    client, bucket = world.stack.client("s3"), world.stack.physical("GovernanceBucket")
    for key in documents(world).keys() - stored.keys():
        client.delete_object(Bucket=bucket, Key=key)
    for key, body in stored.items():
        client.put_object(Bucket=bucket, Key=key, Body=body)
    world.stack.run_until_quiet(1800)


def counts(world: World) -> dict[str, int]:
    quotas = world.stack.sagemaker.quotas(world.cluster_arn)
    return {
        one["ComputeQuotaTarget"]["TeamName"]: one["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"]
        for one in quotas
    }


def last_plan(world: World) -> Plan:
    runs = sorted(
        (item for item in backup(world) if item["sk"]["S"].startswith("RUN#")), key=lambda item: item["sk"]["S"]
    )
    return world.plan_at(json.loads(runs[-1]["plan"]["S"]))


def waiting(world: World) -> str:
    """Return what the plan that waits for a person says of the restored state."""
    (asked,) = (item for item in backup(world) if item["pk"]["S"].startswith("APPROVAL#"))
    plan = world.plan_at(json.loads(asked["plan"]["S"]))
    (verdict,) = (verdict for verdict in plan.guardrails if verdict.guardrail == "state-restored")
    return verdict.because


def said(world: World, code: str) -> list[str]:
    return [finding.because for finding in last_plan(world).findings if finding.code == code]


def test_a_table_out_of_a_backup_is_noticed_and_its_records_are_those_of_the_last_look(world: World) -> None:
    govern(world, alpha=2, beta=2)
    kept = backup(world)
    govern(world, alpha=4, beta=3)
    look(world)
    restore(world, kept)
    look(world)
    assert counts(world) == {"alpha": 4, "beta": 3}
    (because,) = said(world, "state-restored")
    assert "The table is an older copy" in because
    assert "All records were recovered from the last snapshot." in because
    assert said(world, "edited-by-hand") == []
    govern(world, alpha=1, beta=3)
    assert counts(world) == {"alpha": 1, "beta": 3}


def test_a_person_s_edit_is_still_an_edit_before_the_backup_and_after_the_restore(world: World) -> None:
    govern(world, alpha=2, beta=2)
    kept = backup(world)
    edit(world, "alpha", 3)
    look(world)
    restore(world, kept)
    look(world)
    (because,) = said(world, "edited-by-hand")
    assert "alpha" in because
    edit(world, "beta", 1)
    look(world)
    assert counts(world) == {"alpha": 3, "beta": 1}
    assert len(said(world, "edited-by-hand")) == 2


def test_what_was_written_after_the_last_look_is_taken_over_and_lowered_by_a_person_only(world: World) -> None:
    govern(world, alpha=2, beta=2)
    kept = backup(world)
    govern(world, alpha=4, beta=3)
    restore(world, kept)
    govern(world, alpha=3, beta=4)
    assert said(world, "edited-by-hand") == []
    assert counts(world) == {"alpha": 4, "beta": 3}, "alpha would fall, and nothing says why it has 4"
    assert "why alpha stand as they do is not known" in waiting(world)
    govern(world, alpha=4, beta=4)
    assert counts(world) == {"alpha": 4, "beta": 4}


@pytest.mark.parametrize("lost", ["empty", "foreign"])
def test_an_empty_or_foreign_table_is_filled_from_the_last_look(world: World, lost: str) -> None:
    govern(world, alpha=2, beta=2)
    look(world)
    stamp = next(item for item in backup(world) if item["sk"]["S"] == "LINEAGE")
    record = json.dumps(json.loads(stamp["record"]["S"]) | {"lineage": "another", "serial": 900})
    foreign = {**stamp, "lineage": {"S": "another"}, "serial": {"N": "900"}, "record": {"S": record}}
    restore(world, [foreign] if lost == "foreign" else [])
    look(world)
    assert counts(world) == {"alpha": 2, "beta": 2}
    assert len(said(world, "state-restored")) == 1
    govern(world, alpha=1, beta=4)
    assert counts(world) == {"alpha": 1, "beta": 4}
    edit(world, "beta", 5)
    look(world)
    assert counts(world) == {"alpha": 1, "beta": 5}
    assert len(said(world, "edited-by-hand")) == 1


def test_documents_out_of_a_backup_wait_for_a_person_until_one_is_put_into_force(world: World) -> None:
    govern(world, alpha=2, beta=2)
    kept = documents(world)
    govern(world, alpha=4, beta=4)
    look(world)
    look(world)
    restore_documents(world, kept)
    look(world)
    assert counts(world) == {"alpha": 4, "beta": 4}
    assert "The bucket is an older copy" in waiting(world)
    govern(world, alpha=3, beta=4)
    assert counts(world) == {"alpha": 3, "beta": 4}


def test_table_and_documents_of_one_backup_wait_for_a_person_before_anything_falls(world: World) -> None:
    govern(world, alpha=2, beta=2)
    kept, table = documents(world), backup(world)
    govern(world, alpha=4, beta=4)
    world.stack.advance(4 * 3600, schedules=[])
    restore(world, table)
    restore_documents(world, kept)
    look(world)
    assert counts(world) == {"alpha": 4, "beta": 4}
    assert "Table and bucket are older copies" in waiting(world)
    govern(world, alpha=4, beta=5)
    assert counts(world) == {"alpha": 4, "beta": 5}


def test_a_new_stack_stands_down_until_it_is_handed_over_and_then_takes_over_what_stands(world: World) -> None:
    govern(world, alpha=2, beta=2)
    tags = world.registered.tags
    (mine,) = tags
    assert mine.startswith("taskgov:stack:")
    tags["taskgov:stack:elder"] = "2026-11-01T09:00:00+00:00"
    govern(world, alpha=3, beta=2)
    assert counts(world) == {"alpha": 2, "beta": 2}
    (because,) = said(world, "other-stack")
    assert "elder" in because
    assert last_plan(world).outcome == "blocked"
    restore(world, [])
    restore_documents(world, {key: body for key, body in documents(world).items() if key.startswith("policies/")})
    del tags[mine]
    look(world)
    assert counts(world) == {"alpha": 2, "beta": 2}
    assert "The stack is new on a cluster that was governed before" in said(world, "state-restored")[0]
    edit(world, "beta", 4)  # as the other stack does
    del tags["taskgov:stack:elder"]
    govern(world, alpha=3, beta=4)
    assert said(world, "edited-by-hand") == []
    assert counts(world) == {"alpha": 3, "beta": 4}
    govern(world, alpha=3, beta=1)
    assert counts(world) == {"alpha": 3, "beta": 4}, "why beta has 4 is not known"
    assert "beta" in waiting(world)
