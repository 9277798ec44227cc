"""Every way through the audit of one cluster."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from taskgov.contracts.steps import AuditClusterRequest
from taskgov.services.metric_catalogue import ALL_CLUSTERS, AUDITS_MISSED
from taskgov_embedded.stepfunctions.host import Ended, TaskFailedError
from tests.statemachines.machines import Execution, definition

START = datetime(2026, 11, 20, 2, 0, tzinfo=UTC)
GIVEN = {
    "clusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl",
    "name": "ml-cluster",
    "after": 0,
}
WELL = {"clusterName": "ml-cluster", "findings": 2, "muted": 3}


@dataclass
class Audit:
    """The machine, with a function that answers as the test says."""

    function: Callable[[], Any] = lambda: WELL
    count: Callable[[], Any] = dict
    asked: list[AuditClusterRequest] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)

    def run(self, **given: Any) -> Ended:
        self.execution = Execution(self._answer, moment=START)
        return self.execution.run(definition("audit"), GIVEN | given)

    def _answer(self, _: str, resource: str, arguments: Any) -> Any:
        if resource.endswith("aws-sdk:cloudwatch:putMetricData"):
            self.metrics.append(arguments)
            return self.count()
        self.asked.append(AuditClusterRequest.parse(arguments["Payload"]))
        return {"Payload": self.function()}


def failing(error: str, cause: str = "") -> Callable[[], Any]:
    def fail() -> Any:
        raise TaskFailedError(error, cause)

    return fail


def test_a_cluster_is_audited_when_its_turn_comes() -> None:
    audit = Audit()
    assert audit.run(after=600).output == {"audited": True, "findings": 2, "muted": 3}
    assert [asked.cluster_arn for asked in audit.asked] == [GIVEN["clusterArn"]]
    assert (audit.execution.moment - START).total_seconds() == 600


def test_a_plain_eks_cluster_is_audited_by_the_name_of_its_document() -> None:
    audit = Audit()
    audit.run(clusterArn="plain", name="plain")
    assert [asked.cluster_arn for asked in audit.asked] == ["plain"]


@pytest.mark.parametrize(
    "error",
    [
        "NotFoundError",
        "ThrottledError",
        "UpstreamError",
        "InvalidRequestError",
        "KeyError",
        "Sandbox.Timedout",
        "States.Timeout",
    ],
)
def test_a_cluster_that_cannot_be_audited_turns_nothing_red_but_its_own_metric(error: str) -> None:
    audit = Audit(failing(error))
    ended = audit.run()
    assert (ended.error, ended.output) == (None, {"audited": False, "findings": 0, "muted": 0})
    (put,) = audit.metrics
    assert put["Namespace"] == "TaskGovernance"
    assert put["MetricData"] == [
        {
            "MetricName": AUDITS_MISSED.name,
            "Unit": AUDITS_MISSED.unit,
            "Value": 1,
            "Dimensions": [{"Name": "Cluster", "Value": cluster}],
        }
        for cluster in ("ml-cluster", ALL_CLUSTERS)
    ]


@pytest.mark.parametrize(("failures", "audited"), [(1, True), (3, True), (4, False)])
def test_a_cluster_that_cannot_be_read_is_tried_again_and_then_missed(failures: int, audited: bool) -> None:
    answers = iter([{"unreadable": "UpstreamError: list nodes: 401"}] * failures)
    audit = Audit(lambda: next(answers, WELL))
    ended = audit.run()
    assert ended.output is not None
    assert ended.output["audited"] is audited
    assert (len(audit.asked), len(audit.metrics)) == (min(failures + 1, 4), int(not audited))


def test_a_missed_audit_that_cannot_be_counted_fails_the_execution() -> None:
    ended = Audit(failing("UpstreamError"), failing("CloudWatch.CloudWatchException", "access denied")).run()
    assert ended.error == "AuditIncomplete"
    assert ended.cause == (
        "ml-cluster was not audited, and that could not be counted as a metric: "
        "CloudWatch.CloudWatchException: access denied"
    )


def test_a_cluster_that_was_deleted_meanwhile_or_has_nothing_to_read_is_no_failure() -> None:
    audit = Audit(lambda: {"nothingToRead": "cluster is being deleted"})
    assert (audit.run().output, audit.metrics) == ({"audited": True, "findings": 0, "muted": 0}, [])


def test_an_audit_of_no_cluster_fails_and_says_what_starts_audits() -> None:
    """As a schedule of an earlier release asks for, or a person who did so before."""
    audit = Audit()
    ended = Execution(audit._answer, moment=START).run(definition("audit"), {})
    assert (ended.error, audit.asked) == ("AuditFailed", [])
    assert 'start the fan-out with {"for": "audit"}' in ended.cause


def test_an_audit_whose_every_try_hangs_ends_in_the_time_of_its_machine() -> None:
    machine = definition("audit")
    look = machine["States"]["Audit cluster"]
    tries = 1 + sum(rule["MaxAttempts"] for rule in look["Retry"] if "States.Timeout" in rule["ErrorEquals"])
    last_turn = 1800  # statemachines/fan_out.asl.yaml
    assert last_turn + 4 * tries * look["TimeoutSeconds"] < machine["TimeoutSeconds"]
