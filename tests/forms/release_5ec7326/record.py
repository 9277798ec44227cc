"""How the fixtures beside this file were made: by commit 5ec7326's own code, in a checkout of it.

git worktree add ../old 5ec7326 && cd ../old
PYTHONPATH=layers/taskgov/python:workstation:. python ../taskgov/tests/forms/release_5ec7326/record.py

Its embedded stack governs a cluster of four GPUs: quotas are written, one of them is edited by hand, one write is
refused for good, an audit is made, the stop switch is turned on and off, and a run waits for approval. Then everything
that the release stored is written down: items of the table, objects of the bucket, quotas, the execution that waits.
"""

import json
import sys
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
G5 = "ml.g5.8xlarge"
LARGEST = 40_000
"""Longer objects (pages of HTML) are not kept."""


def team(name: str, count: int) -> dict[str, Any]:
    return {"name": name, "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": count}]}}


def document(*teams: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
        "teams": list(teams),
        "sharedPool": {"team": "shared-pool", "takes": "remainder"},
        "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
        **more,
    }


FIRST = document(team("team-a", 2), team("team-b", 1))
REFUSED = document(team("team-a", 2), team("team-b", 1), team("team-c", 1))
ASKING = document(team("team-a", 1), team("team-b", 1), guardrails={"approveAbove": {"changedGpus": 1}})


def plain(value: Any) -> Any:
    match value:
        case datetime():
            return {"at": value.isoformat()}
        case Decimal():
            return str(value)
        case _:
            return str(value)


def write(name: str, value: Any) -> None:
    text = json.dumps(value, indent=1, sort_keys=True, default=plain, ensure_ascii=False)
    (HERE / name).write_text(text + "\n")


def main() -> None:
    from tests.support.operating import opened, played, taskgov

    with opened({"policy": FIRST}) as world:
        played(world)
        stack = world.stack
        quotas = {one["Name"]: one for one in stack.sagemaker.quotas(world.cluster_arn)}
        edited = next(one for one in quotas.values() if one["ComputeQuotaTarget"]["TeamName"] == "team-b")
        stack.client("sagemaker", "carol").update_compute_quota(
            ComputeQuotaId=edited["ComputeQuotaId"],
            TargetVersion=edited["ComputeQuotaVersion"],
            ComputeQuotaTarget={"TeamName": "team-b", "FairShareWeight": 7},
        )
        stack.run_until_quiet(300)
        stack.sagemaker.governance.limit_per_cluster = len(quotas)
        put(world, REFUSED)
        stack.run_until_quiet(600)
        stack.fire("AuditAllSchedule")
        stack.run_until_quiet(300)
        print(taskgov("stop", "on", "--reason", "maintenance").output, file=sys.stderr)
        print(taskgov("stop", "off").output, file=sys.stderr)
        put(world, ASKING)
        stack.run_until_quiet(600)
        record(world)


def put(world: Any, wanted: dict[str, Any]) -> None:
    body = json.dumps(wanted).replace("${clusterArn}", world.cluster_arn).encode()
    bucket = world.stack.outputs["BucketName"]
    world.stack.client("s3").put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=body)


def machines() -> list[Any]:
    from moto.stepfunctions.parser.models import stepfunctions_parser_backends

    return list(stepfunctions_parser_backends["111122223333"]["us-east-1"].state_machines)


def record(world: Any) -> None:
    stack = world.stack
    client, bucket = stack.client("s3"), stack.outputs["BucketName"]
    keys = [each["Key"] for each in client.list_objects_v2(Bucket=bucket)["Contents"]]
    bodies = {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}
    write("objects.json", {key: body.decode() for key, body in bodies.items() if len(body) <= LARGEST})
    items = stack.client("dynamodb").scan(TableName=stack.outputs["TableName"])["Items"]
    write("items.json", sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"])))
    (machine,) = [one for one in machines() if "Reconcile" in one.name]
    (execution,) = [one for one in machine.executions if one.status == "RUNNING"]
    variables = execution.exec_worker.env.variable_store
    write(
        "waiting.json",
        {
            "name": execution.name,
            "arn": execution.execution_arn,
            "input": execution.execution_input,
            "state": "Ask for approval",
            "given": {},
            "variables": {**variables._outer_scope, **variables._inner_scope},
            "definition": json.loads(machine.definition),
        },
    )
    write(
        "cluster.json",
        {
            "now": stack.clock.now.isoformat(),
            "arn": world.cluster_arn,
            "outputs": dict(stack.outputs),
            "quotas": stack.sagemaker.quotas(world.cluster_arn),
            "schedulerConfig": stack.sagemaker.scheduler_config(world.cluster_arn),
            "left out": sorted(key for key, body in bodies.items() if len(body) > LARGEST),
        },
    )


if __name__ == "__main__":
    main()
