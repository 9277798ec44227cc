"""Tables and descriptions as people see them."""

from __future__ import annotations

import pytest

from taskgov_embedded.cluster.ages import human_duration
from taskgov_embedded.cluster.tables import headers, row
from tests.embedded.cluster.support import RANKS, Lab, policy, quota
from tests.support.kubectl_tables import table


def lab_with_a_job() -> Lab:
    lab = Lab().nodes("ml.g5.8xlarge", 1)
    lab.cluster.govern([quota("team-a", {"InstanceType": "ml.g5.8xlarge", "Count": 2})], policy(RANKS))
    lab.submit("team-a", "train", pods=2, gpu=1)
    lab.advance(217)
    return lab


def test_pods_are_listed_as_kubectl_does() -> None:
    assert lab_with_a_job().views.pods("hyperpod-ns-team-a") == (
        "NAME             READY   STATUS    RESTARTS   AGE\n"
        "train-worker-0   1/1     Running   0          3m47s\n"
        "train-worker-1   0/1     Pending   0          3m47s"
    )


def test_jobs_are_listed_with_what_they_do() -> None:
    lab = lab_with_a_job()
    lab.submit("team-a", "later", pods=2, gpu=1)
    assert lab.views.jobs() == (
        "NAME    NAMESPACE            STATUS                        AGE\n"
        "later   hyperpod-ns-team-a   Suspended                     N/A\n"
        "train   hyperpod-ns-team-a   Admitted, waiting for nodes   3m57s"
    )
    assert lab.views.jobs("default") == "NAME   NAMESPACE   STATUS   AGE"


def test_conditions_are_described_as_kubectl_does() -> None:
    lab = lab_with_a_job()
    name = lab.workload("team-a", "train")["metadata"]["name"]
    assert lab.views.conditions("hyperpod-ns-team-a", name) == (
        "Status:\n"
        "  Conditions:\n"
        "    Last Transition Time:  2026-11-20T09:00:00Z\n"
        "    Message:               Quota reserved in ClusterQueue hyperpod-ns-team-a-clusterqueue\n"
        "    Reason:                QuotaReserved\n"
        "    Status:                True\n"
        "    Type:                  QuotaReserved\n"
        "    Last Transition Time:  2026-11-20T09:00:00Z\n"
        "    Message:               The workload is admitted\n"
        "    Reason:                Admitted\n"
        "    Status:                True\n"
        "    Type:                  Admitted"
    )


def test_a_table_without_rows_is_its_header() -> None:
    assert table(("NAME", "AGE"), []) == "NAME   AGE"


def test_ages_of_years() -> None:
    day = 86_400
    assert [human_duration(days * day) for days in (7, 8, 729, 730, 800)] == ["7d", "8d", "729d", "2y", "2y70d"]


@pytest.mark.parametrize(
    ("plural", "shown"),
    [
        ("nodes", "NAME STATUS ROLES AGE VERSION"),
        ("jobs", "NAME STATUS COMPLETIONS DURATION AGE"),
        ("events", "LAST SEEN TYPE REASON OBJECT MESSAGE"),
        ("services", "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE"),
        ("clusterqueues", "NAME COHORT PENDING WORKLOADS"),
        ("localqueues", "NAME CLUSTERQUEUE PENDING WORKLOADS ADMITTED WORKLOADS"),
        ("workloadpriorityclasses", "NAME VALUE"),
        ("resourceflavors", "NAME AGE"),
    ],
)
def test_columns_are_those_of_kubectl(plural: str, shown: str) -> None:
    assert " ".join(headers(plural)) == shown


def test_rows_of_types_without_a_walkthrough() -> None:
    lab = lab_with_a_job()
    (node,) = lab.cluster.store.list("nodes")
    assert row("nodes", node, lab.moment)[1:] == ("Ready", "<none>", "3m47s", "v1.33.4-eks-simulated")
    service = {
        "kind": "Service",
        "metadata": {"name": "s"},
        "spec": {"ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]},
    }
    assert row("services", service, lab.moment) == ("s", "ClusterIP", "None", "<none>", "80/TCP,53/UDP", "<unknown>")
    event = {
        "involvedObject": {"kind": "Job", "name": "j"},
        "type": "Warning",
        "reason": "NotGoverned",
        "message": "m",
        "firstTimestamp": "2026-11-20T09:00:00Z",
    }
    assert row("events", event, lab.moment) == ("3m47s", "Warning", "NotGoverned", "job/j", "m")
