from pathlib import Path
from typing import Any

import pytest

from taskgov.hyperpod.instance_types import InstanceTypeTable, UnknownInstanceTypeError
from taskgov.hyperpod.model import ComputeQuota, SchedulerConfig
from taskgov.kueue.render import KueueVersion, ManagerConfiguration, manager_configuration, render
from tests.support.kubectl import described, unspaced

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"
TABLE = InstanceTypeTable()
GPUS = "nvidia.com/gpu"


def a_quota(
    team: str,
    resources: list[dict[str, Any]],
    *,
    strategy: str = "LendAndBorrow",
    borrow_limit: int | None = 50,
    weight: int | None = None,
    preempt: str | None = None,
    activation: str = "Enabled",
) -> ComputeQuota:
    return ComputeQuota.model_validate(
        {
            "ComputeQuotaId": "abcdefghijkl",
            "Name": f"{team}-quota",
            "ComputeQuotaVersion": 1,
            "Status": "Created",
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": resources,
                "ResourceSharingConfig": {"Strategy": strategy, "BorrowLimit": borrow_limit},
                "PreemptTeamTasks": preempt,
            },
            "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": weight},
            "ActivationState": activation,
        }
    )


def documented_quota() -> ComputeQuota:
    promise = {"InstanceType": "ml.g6.12xlarge", "Accelerators": 2, "VCpu": 48.0}
    return a_quota("onlygputeam", [promise], weight=10, preempt="LowerPriority")


def only_queue(quota: ComputeQuota, version: KueueVersion = "v1beta1") -> dict[str, Any]:
    [queue] = render([quota], None, TABLE, version).cluster_queues
    return queue


def limits(queue: dict[str, Any], resource: str = GPUS) -> dict[str, tuple[str, str | None]]:
    [group] = queue["spec"]["resourceGroups"]
    return {
        flavor["name"]: (entry["nominalQuota"], entry.get("borrowingLimit"))
        for flavor in group["flavors"]
        for entry in flavor["resources"]
        if entry["name"] == resource
    }


def test_the_cluster_queue_is_the_documented_one() -> None:
    team = "onlygputeam"
    assert only_queue(documented_quota()) == {
        "apiVersion": "kueue.x-k8s.io/v1beta1",
        "kind": "ClusterQueue",
        "metadata": {
            "name": f"hyperpod-ns-{team}-clusterqueue",
            "labels": {
                "sagemaker.amazonaws.com/quota-allocation-id": team,
                "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
            },
        },
        "spec": {
            "cohort": "shared-pool",
            "fairSharing": {"weight": "10"},
            "flavorFungibility": {"whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor"},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": f"hyperpod-ns-{team}"}},
            "preemption": {
                "borrowWithinCohort": {"policy": "LowerPriority"},
                "reclaimWithinCohort": "Any",
                "withinClusterQueue": "LowerPriority",
            },
            "queueingStrategy": "BestEffortFIFO",
            "resourceGroups": [
                {
                    "coveredResources": [
                        "nvidia.com/gpu",
                        "aws.amazon.com/neurondevice",
                        "cpu",
                        "memory",
                        "vpc.amazonaws.com/efa",
                    ],
                    "flavors": [
                        {
                            "name": "ml.g6.12xlarge",
                            "resources": [
                                {"name": "nvidia.com/gpu", "nominalQuota": "2", "borrowingLimit": "1"},
                                {"name": "aws.amazon.com/neurondevice", "nominalQuota": "0", "borrowingLimit": "0"},
                                {"name": "cpu", "nominalQuota": "48", "borrowingLimit": "24"},
                                {"name": "memory", "nominalQuota": "192Gi", "borrowingLimit": "96Gi"},
                                {"name": "vpc.amazonaws.com/efa", "nominalQuota": "1", "borrowingLimit": "0"},
                            ],
                        }
                    ],
                }
            ],
            "stopPolicy": "None",
        },
    }


def test_kubectl_describe_of_our_queues_reads_as_printed() -> None:
    seeds = list(SEEDS.glob("003_*"))
    if not seeds:
        pytest.skip(f"the printed queues are not beside this checkout: {SEEDS}")
    text = unspaced(seeds[0].read_text())
    rendered = render([documented_quota()], None, TABLE)

    [queue], [local] = rendered.cluster_queues, rendered.local_queues
    spec = dict(queue["spec"])
    # The printed ClusterQueue ends in "..." before its stop policy.
    assert spec.pop("stopPolicy") == "None"
    assert described("ClusterQueue", queue["metadata"]["labels"], spec) in text
    assert described("LocalQueue", local["metadata"]["labels"], local["spec"]) in text


def test_the_namespace_and_the_local_queue_carry_hyperpods_names_and_labels() -> None:
    rendered = render([a_quota("nlp", [])], None, TABLE)

    [namespace], [local] = rendered.namespaces, rendered.local_queues
    assert namespace["metadata"] == {
        "name": "hyperpod-ns-nlp",
        "labels": {
            "sagemaker.amazonaws.com/quota-allocation-id": "nlp",
            "sagemaker.amazonaws.com/sagemaker-managed-queue": "true",
            "sagemaker.amazonaws.com/activate-quota": "Enabled",
        },
    }
    assert local["metadata"]["namespace"] == "hyperpod-ns-nlp"
    assert local["spec"] == {"clusterQueue": "hyperpod-ns-nlp-clusterqueue", "stopPolicy": "None"}


def test_v1beta2_names_the_cohort_differently_and_nothing_else() -> None:
    old, new = only_queue(documented_quota(), "v1beta1"), only_queue(documented_quota(), "v1beta2")

    assert new["apiVersion"] == "kueue.x-k8s.io/v1beta2"
    assert new["spec"].pop("cohortName") == old["spec"].pop("cohort") == "shared-pool"
    assert new["spec"] == old["spec"]


def test_a_mixed_quota_has_a_flavor_for_each_type_in_its_own_order() -> None:
    promises = [
        {"InstanceType": "ml.g6.12xlarge", "Accelerators": 2},
        {"InstanceType": "ml.p5.48xlarge", "Count": 3},
        {"InstanceType": "ml.c5.2xlarge", "VCpu": 2},
    ]
    rendered = render([a_quota("mixquotatype", promises, borrow_limit=10, weight=10)], None, TABLE)

    [queue] = rendered.cluster_queues
    assert limits(queue) == {"ml.g6.12xlarge": ("2", "0"), "ml.p5.48xlarge": ("24", "2"), "ml.c5.2xlarge": ("0", "0")}
    assert limits(queue, "memory")["ml.c5.2xlarge"] == ("4Gi", "429496729")
    assert [one["metadata"]["name"] for one in rendered.resource_flavors] == sorted(limits(queue))


def test_a_team_that_does_not_lend_stays_out_of_the_cohort_and_has_no_borrowing_limit() -> None:
    queue = only_queue(a_quota("alone", [{"InstanceType": "ml.g5.8xlarge", "Count": 2}], strategy="DontLend"))

    assert "cohort" not in queue["spec"]
    assert limits(queue) == {"ml.g5.8xlarge": ("2", None)}


def test_a_team_that_only_lends_is_in_the_cohort_and_borrows_nothing() -> None:
    queue = only_queue(a_quota("giver", [{"InstanceType": "ml.g5.8xlarge", "Count": 2}], strategy="Lend"))

    assert queue["spec"]["cohort"] == "shared-pool"
    assert limits(queue) == {"ml.g5.8xlarge": ("2", "0")}


def test_mig_partitions_are_covered_and_nought_where_a_type_has_none() -> None:
    partition = {"Type": "mig-1g.5gb", "Count": 7}
    promises: list[dict[str, Any]] = [
        {"InstanceType": "ml.p4d.24xlarge", "AcceleratorPartition": partition},
        {"InstanceType": "ml.g5.8xlarge", "Count": 1},
    ]
    queue = only_queue(a_quota("slices", promises, borrow_limit=100))

    assert limits(queue, "nvidia.com/mig-1g.5gb") == {"ml.p4d.24xlarge": ("7", "7"), "ml.g5.8xlarge": ("0", "0")}
    assert queue["spec"]["resourceGroups"][0]["coveredResources"][-1] == "nvidia.com/mig-1g.5gb"


def test_a_disabled_quota_holds_its_queues_and_says_so_on_the_namespace() -> None:
    rendered = render([a_quota("off", [], activation="Disabled")], None, TABLE)

    assert rendered.cluster_queues[0]["spec"]["stopPolicy"] == "Hold"
    assert rendered.local_queues[0]["spec"]["stopPolicy"] == "Hold"
    assert rendered.namespaces[0]["metadata"]["labels"]["sagemaker.amazonaws.com/activate-quota"] == "Disabled"


def test_a_team_may_be_kept_from_preempting_its_own_tasks() -> None:
    queue = only_queue(a_quota("calm", [], preempt="Never"))

    assert queue["spec"]["preemption"]["withinClusterQueue"] == "Never"
    assert queue["spec"]["fairSharing"] == {"weight": "0"}
    assert queue["spec"]["resourceGroups"] == []


def test_priority_classes_are_named_and_weighted_as_hyperpod_does() -> None:
    scheduler = SchedulerConfig.model_validate(
        {"PriorityClasses": [{"Name": "training", "Weight": 70}, {"Name": "inference", "Weight": 90}]}
    )

    classes = render([], scheduler, TABLE).priority_classes

    assert [(one["metadata"]["name"], one["value"]) for one in classes] == [
        ("inference-priority", 90),
        ("training-priority", 70),
    ]


@pytest.mark.parametrize(
    ("scheduler", "fair"),
    [
        (SchedulerConfig.model_validate({"FairShare": "Enabled"}), True),
        (SchedulerConfig.model_validate({"FairShare": "Disabled"}), False),
        (SchedulerConfig(), True),
        (None, False),
    ],
    ids=["enabled", "disabled", "default of a policy", "no policy: first come first served"],
)
def test_kueues_manager_shares_fairly_when_the_cluster_policy_says_so(
    scheduler: SchedulerConfig | None, *, fair: bool
) -> None:
    configuration = manager_configuration(scheduler)

    assert configuration.fair_sharing is fair
    assert ("fairSharing" in configuration.to_manifest()) is fair
    assert "waitForPodsReady" not in configuration.to_manifest()


def test_gang_scheduling_is_switched_on_where_it_is_wanted() -> None:
    manifest = ManagerConfiguration(fair_sharing=False, wait_for_pods_ready=True).to_manifest()

    assert manifest["apiVersion"] == "config.kueue.x-k8s.io/v1beta2"
    assert manifest["waitForPodsReady"] == {"timeout": "5m", "blockAdmission": True}
    assert "featureGates" not in manifest


def test_a_manager_that_is_not_configured_for_pods_ready_does_not_wait() -> None:
    """In v1beta2 it would by default."""
    assert ManagerConfiguration(fair_sharing=True).to_manifest()["featureGates"] == {"DisableWaitForPodsReady": True}


def test_objects_come_in_an_order_in_which_nothing_refers_to_what_is_not_there() -> None:
    scheduler = SchedulerConfig.model_validate({"PriorityClasses": [{"Name": "training", "Weight": 70}]})
    quotas = [a_quota(team, [{"InstanceType": "ml.g5.8xlarge", "Count": 1}]) for team in ("b", "a")]

    kinds = [one["kind"] for one in render(quotas, scheduler, TABLE).in_order()]

    assert kinds == [
        "Namespace", "Namespace", "ResourceFlavor", "WorkloadPriorityClass",
        "ClusterQueue", "ClusterQueue", "LocalQueue", "LocalQueue",
    ]  # fmt: skip


def test_a_quota_on_an_unknown_type_is_refused_with_the_way_out() -> None:
    with pytest.raises(UnknownInstanceTypeError, match="instanceTypes"):
        render([a_quota("a", [{"InstanceType": "ml.x1.huge", "Count": 1}])], None, TABLE)
