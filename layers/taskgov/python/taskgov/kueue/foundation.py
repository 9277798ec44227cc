"""What of a governed cluster belongs to no team: the cohort, and the rule that every job names its queue.

The `kueue` backend applies it before the teams' objects. Kueue leaves a job alone whose own labels name no queue; such
a job would run beside all quotas, so the API server refuses it in governed namespaces. The names are HyperPod's; what
its policy says is not documented, so its content is ours.
"""

from typing import Final

from taskgov.hyperpod import names
from taskgov.kueue.render import KueueVersion, Manifest

ADMISSION_API: Final = "admissionregistration.k8s.io/v1"
GOVERNED_JOBS: Final = (
    ("batch", ("jobs",)),
    ("jobset.x-k8s.io", ("jobsets",)),
    ("kubeflow.org", ("jaxjobs", "mpijobs", "paddlejobs", "pytorchjobs", "tfjobs", "xgboostjobs")),
    ("ray.io", ("rayclusters", "rayjobs")),
    ("sagemaker.amazonaws.com", ("hyperpodpytorchjobs",)),
    ("trainer.kubeflow.org", ("trainjobs",)),
)
"""API group and resources of the jobs that Kueue holds back. Pods are not among them: every job makes some."""

_LABEL: Final = f"'{names.QUEUE_NAME_LABEL}'"
_NAMES_QUEUE: Final = (
    f"has(object.metadata.labels) && {_LABEL} in object.metadata.labels && object.metadata.labels[{_LABEL}] != ''"
)
_NAMES_QUEUE_ON_PODS: Final = (
    "has(object.spec.template) && has(object.spec.template.metadata) && has(object.spec.template.metadata.labels)"
    f" && {_LABEL} in object.spec.template.metadata.labels"
)
_BY_ITSELF: Final = "!has(object.metadata.ownerReferences) || object.metadata.ownerReferences.size() == 0"


def cohort(version: KueueVersion) -> Manifest:
    """Return the cohort in which all teams lend and borrow; it has no quota of its own."""
    return {"apiVersion": f"kueue.x-k8s.io/{version}", "kind": "Cohort", "metadata": {"name": names.COHORT}}


def admission_policy() -> tuple[Manifest, Manifest]:
    """Return the ValidatingAdmissionPolicy that demands a queue name, and its binding to governed namespaces.

    A job that another object owns (a JobSet's, a CronJob's) is not asked: its owner is held back for it.
    """
    metadata = {"name": names.ADMISSION_POLICY}
    policy = {
        "apiVersion": ADMISSION_API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {"resourceRules": [_rule(group, jobs) for group, jobs in GOVERNED_JOBS]},
            "matchConditions": [{"name": "made-by-a-person", "expression": _BY_ITSELF}],
            "validations": [{"expression": _NAMES_QUEUE, "messageExpression": _MESSAGE, "reason": "Invalid"}],
        },
    }
    binding = {
        "apiVersion": ADMISSION_API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {
            "policyName": names.ADMISSION_POLICY,
            "validationActions": ["Deny"],
            "matchResources": {"namespaceSelector": {"matchLabels": {names.MANAGED_QUEUE_LABEL: "true"}}},
        },
    }
    return policy, binding


def _rule(group: str, jobs: tuple[str, ...]) -> Manifest:
    return {"apiGroups": [group], "apiVersions": ["*"], "operations": ["CREATE"], "resources": list(jobs)}


_MESSAGE: Final = (
    f"({_NAMES_QUEUE_ON_PODS})"
    f" ? 'the label {names.QUEUE_NAME_LABEL} is on the pod template, where Kueue does not look:"
    " write it into the metadata of the job itself'"
    f" : 'jobs in namespace ' + request.namespace + ' are governed: name the queue of your team in the label"
    f" {names.QUEUE_NAME_LABEL}, here ' + request.namespace + '-localqueue'"
)
"""CEL: the message to a person who is refused."""
