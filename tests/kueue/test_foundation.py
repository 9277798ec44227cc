"""What belongs to no team: the cohort, and the rule that a job names its queue."""

from taskgov.kueue.foundation import admission_policy, cohort


def test_the_cohort_is_hyperpods_and_has_no_quota_of_its_own() -> None:
    assert cohort("v1beta2") == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Cohort",
        "metadata": {"name": "shared-pool"},
    }


def test_the_policy_binds_to_governed_namespaces_only_and_denies() -> None:
    policy, binding = admission_policy()
    assert policy["metadata"]["name"] == binding["metadata"]["name"] == binding["spec"]["policyName"]
    assert policy["metadata"]["name"] == "hyperpod-task-governance-admission-policy"
    assert binding["spec"]["validationActions"] == ["Deny"]
    assert binding["spec"]["matchResources"]["namespaceSelector"]["matchLabels"] == {
        "sagemaker.amazonaws.com/sagemaker-managed-queue": "true"
    }


def test_only_creation_of_jobs_is_asked_never_a_pod() -> None:
    policy, _ = admission_policy()
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    assert {operation for rule in rules for operation in rule["operations"]} == {"CREATE"}
    assert {"jobs", "pytorchjobs", "hyperpodpytorchjobs"} <= {name for rule in rules for name in rule["resources"]}
    assert not {"pods", "*"} & {name for rule in rules for name in rule["resources"]}
