"""The product's own template, machines and handlers in the embedded stack, beside a simulated cluster."""

from __future__ import annotations

import json
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from samtranslator.yaml_helper import yaml_parse

from taskgov_embedded.cluster.access import TokenVerifier, read_rules
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.sagemaker.cluster_port import GroupFact
from taskgov_embedded.stack import Stack
from taskgov_embedded.virtual_time.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def real() -> Iterator[Stack]:
    clock = VirtualClock()
    with ExitStack() as opened:
        stack = opened.enter_context(Stack(ROOT / "template.yaml", {"ClustersWithoutDocument": "ml-cluster"}, clock))
        cluster = SimulatedCluster("ml-cluster", lambda: clock.now, pace=Pace(join=30, stop=1), at=clock.at)
        cluster.set_target(GroupFact("workers", "ml.g5.8xlarge", 4))
        verifier = TokenVerifier("ml-eks", lambda: clock.now)
        rules = read_rules(ROOT / "docs" / "rbac.yaml")
        server = opened.enter_context(ClusterApiServer(cluster.store, verifier=verifier, rules=rules))
        stack.sagemaker.register_cluster("ml-cluster", cluster, eks_cluster_name="ml-eks")
        stack.eks.register_cluster("ml-eks", server.url, certificate_authority="")
        stack.run_until_quiet()
        yield stack


def executions(stack: Stack, machine: str) -> list[dict[str, Any]]:
    client = stack.client("stepfunctions")
    found: list[dict[str, Any]] = client.list_executions(stateMachineArn=stack.physical(machine))["executions"]
    return found


def test_a_cluster_event_runs_the_real_chain(real: Stack) -> None:
    (cluster,) = real.sagemaker.clusters
    real.sagemaker.emit_cluster_state_change(cluster)
    real.run_until_quiet()
    assert [one["status"] for one in executions(real, "ReconcileStateMachine")] == ["SUCCEEDED"]
    assert [one.value["errorType"] for one in real.results if one.is_error] == []
    invoked = {one.function for one in real.results}
    assert {"ReceiveEventFunction", "ReadSnapshotFunction", "PlanQuotasFunction", "PublishUsageFunction"} <= invoked


def test_the_audit_runs_from_its_schedule(real: Stack) -> None:
    real.fire("AuditAllSchedule")
    real.run_until_quiet()
    assert [one["status"] for one in executions(real, "AuditStateMachine")] == ["SUCCEEDED"]


def test_metrics_of_the_functions_are_in_cloudwatch(real: Stack) -> None:
    real.advance(60)
    names = {one["MetricName"] for one in real.client("cloudwatch").list_metrics(Namespace="TaskGovernance")["Metrics"]}
    assert {"CapacityHealthy", "EventsReceived"} <= names


def test_the_alarm_on_stale_clusters_rings_without_looks_and_stops_with_one(real: Stack) -> None:
    s3, bucket = real.client("s3"), real.physical("GovernanceBucket")
    (arn,) = real.client("sagemaker").list_clusters()["ClusterSummaries"]
    document = f"apiVersion: taskgov/v1\ncluster: {{name: ml-cluster, arn: '{arn['ClusterArn']}'}}\nteams: []\n"
    s3.put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=document.encode())
    real.run_until_quiet()
    assert not rings(real)
    real.clock.move_to(real.clock.now + timedelta(seconds=7300))
    assert rings(real)
    (cluster,) = real.sagemaker.clusters
    real.sagemaker.emit_cluster_state_change(cluster)
    real.run_until_quiet()
    assert not rings(real)


def rings(real: Stack) -> bool:
    """Publish as the schedule does, and compare with the template's alarm."""
    alarm = yaml_parse((ROOT / "template.yaml").read_text())["Resources"]["ClusterStaleAlarm"]["Properties"]
    real.fire("PublishUsageSchedule")
    real.run_until_quiet(30)
    now = real.clock.now
    metric = {key: alarm[key] for key in ("Namespace", "MetricName", "Dimensions")}
    stat = {"Metric": metric, "Period": 60, "Stat": alarm["Statistic"]}
    (found,) = real.client("cloudwatch").get_metric_data(
        MetricDataQueries=[{"Id": "age", "MetricStat": stat}],
        StartTime=now - timedelta(minutes=1),
        EndTime=now + timedelta(minutes=1),
    )["MetricDataResults"]
    assert alarm["TreatMissingData"] == "ignore"
    assert found["Values"], "nothing was measured"
    return bool(found["Values"][0] > alarm["Threshold"])


def test_no_call_of_a_role_is_denied_and_every_condition_is_evaluated(real: Stack) -> None:
    assert [one.what for one in real.timeline.of("denied")] == []
    assert real.requests.unknown_condition_keys == set()


def test_an_unreadable_event_is_dead_lettered_and_logged(real: Stack) -> None:
    url = real.physical("IntakeQueue")
    real.client("sqs").send_message(QueueUrl=url, MessageBody="{broken")
    real.run_until_quiet(max_virtual_seconds=7200)
    attributes = real.client("sqs").get_queue_attributes(
        QueueUrl=real.physical("IntakeDeadLetterQueue"), AttributeNames=["ApproximateNumberOfMessages"]
    )["Attributes"]
    assert attributes["ApproximateNumberOfMessages"] == "1"
    lines = [json.loads(line) for line in real.logs("ReceiveEventFunction") if "event not read" in line]
    assert {line["error"] for line in lines} == {"MalformedEventError"}
    assert {line["reason"].partition(":")[0] for line in lines} == {"the message is not JSON"}
    assert len(lines) == 5


def test_what_an_execution_was_given_is_read_with_its_key_only(real: Stack) -> None:
    (cluster,) = real.sagemaker.clusters
    real.sagemaker.emit_cluster_state_change(cluster)
    real.run_until_quiet()
    arn = executions(real, "ReconcileStateMachine")[0]["executionArn"]
    client = real.client_of("ReceiveEventRole", "stepfunctions")
    assert client.describe_execution(executionArn=arn, includedData="METADATA_ONLY")["status"] == "SUCCEEDED"
    with pytest.raises(ClientError, match="kms:Decrypt"):
        client.describe_execution(executionArn=arn)
