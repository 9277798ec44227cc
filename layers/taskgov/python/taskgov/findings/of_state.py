"""Findings of a plan about what it is made from, and about what stands in the way of its writes."""

from typing import Final

from taskgov.findings import Severity
from taskgov.findings.kind import ByCase, FindingKind

POLICY_VIOLATION: Final = FindingKind(
    code="policy-violation",
    severity=Severity.ERROR,
    means="the document breaks a rule; nothing is changed",
    sentence="{value}: {rule}",
    remedy="correct the document",
    found_in=("allocation/plan_findings.py",),
)
NO_ROOM: Final = FindingKind(
    code="no-room",
    severity=Severity.WARNING,
    means="a quota cannot be raised, because another quota stays as it is",
    sentence="The quota {quota} is left as it is: there is no room for what it would take.",
    remedy="lower the quotas that hold it",
    found_in=("allocation/plan_findings.py",),
)
CANNOT_BE_SPLIT: Final = FindingKind(
    code="unknown-instance-type",
    severity=Severity.WARNING,
    means="a write of parts of a type with unknown numbers cannot be split in two",
    sentence=(
        "The quota {quota} is left as it is: it gives and takes, and parts of {instance_type} cannot be split: its "
        "numbers are not known."
    ),
    remedy="add {instance_type} to instanceTypes in the policy document",
    found_in=("allocation/plan_findings.py",),
)
HELD_BACK: Final = FindingKind(
    code="held-back",
    severity=Severity.WARNING,
    means="`onLimit: partial` keeps a failed quota from being deleted with what it holds",
    sentence="The quota {quota} with status {status} is left as it is: {because}.",
    remedy="raise the limit, or delete the quota by hand",
    found_in=("allocation/plan_findings.py",),
)
WRITE_REFUSED: Final = FindingKind(
    code="write-refused",
    severity=Severity.ERROR,
    means="a write was refused; when it is tried again, and what would make it succeed",
    sentence=(
        "The service refused to {deed} {what} at {at:%Y-%m-%d %H:%M} UTC ({error}): {message} The plan does not ask "
        "again before {again_at:%Y-%m-%d %H:%M} UTC."
    ),
    remedy="{way_out}; to retry at once: taskgov reconcile {cluster} --retry-refused",
    found_in=("allocation/plan_findings.py",),
)
NO_PROGRESS: Final = FindingKind(
    code="no-progress",
    severity=Severity.ERROR,
    means="the previous run wrote the same, it has settled, and the service holds something else",
    sentence="The run before wrote the same to {quotas}; it has settled, and the service holds something else.",
    remedy="compare the quota with what was written (taskgov history), and change the document to the service's value",
    found_in=("allocation/progress.py",),
)
STATE_RESTORED: Final = FindingKind(
    code="state-restored",
    severity=ByCase(
        "warning for a new stack on a cluster that was governed before, otherwise incident",
        lambda is_new_stack: Severity.WARNING if is_new_stack else Severity.INCIDENT,
    ),
    means="table or bucket is an older copy, empty, or another stack's: nothing is lowered because of the loss alone",
    sentence="{loss}: {because}.{left}",
    remedy="see docs/runbooks/restored-state.md",
    found_in=("allocation/doubts.py",),
)
OTHER_STACK: Final = FindingKind(
    code="other-stack",
    severity=ByCase(
        "incident for a stack that would apply, info for one that only plans",
        lambda only_plans: Severity.INFO if only_plans else Severity.INCIDENT,
    ),
    means="another stack governs the cluster; this one writes nothing",
    sentence="{claim} governs the cluster; this is stack {own}, which writes nothing",
    remedy="if the other stack is gone, or should stop: taskgov govern CLUSTER --yes",
    found_in=("allocation/doubts.py",),
)
OTHER_STACK_YOUNGER: Final = FindingKind(
    code="other-stack-younger",
    severity=Severity.WARNING,
    means="a newer stack has tagged the cluster too",
    sentence="{claim} has tagged the cluster too; it writes nothing, because it began later",
    remedy="delete the other stack, then remove its tag: taskgov govern CLUSTER --yes",
    found_in=("allocation/doubts.py",),
)
UNREADABLE_ITEM: Final = FindingKind(
    code="unreadable-item",
    severity=Severity.ERROR,
    means="a record of the table that a newer release wrote, or that is damaged; its quota stays as it is",
    sentence="{item}",
    remedy="run the release that wrote it, or correct it, or delete it and see docs/runbooks/restored-state.md",
    found_in=("allocation/doubts.py",),
)
UNREADABLE_OBJECT: Final = FindingKind(
    code="unreadable-object",
    severity=ByCase(
        "error if no quota can be written without it, otherwise warning",
        lambda is_of_promises: Severity.ERROR if is_of_promises else Severity.WARNING,
    ),
    means="objects of Kubernetes or SageMaker that cannot be read and are left out, by kind, with the effect",
    sentence="Left out, because it cannot be read: {objects}. {effect}",
    remedy="correct or delete the object; a release that supports its form can read it",
    found_in=("allocation/doubts.py",),
)
KUEUE_VERSION: Final = FindingKind(
    code="kueue-version",
    severity=Severity.WARNING,
    means="the cluster's Kueue has another minor version than the one that the scheduling model follows",
    sentence="Kueue is {version}, and predictions are those of {followed}; {differences}.",
    remedy="treat predictions as likely, not certain, until both have the same minor version",
    found_in=("allocation/kueue_version.py",),
)
KUEUE_VERSION_UNKNOWN: Final = FindingKind(
    code="kueue-version-unknown",
    severity=Severity.INFO,
    means="the version of the cluster's Kueue could not be read",
    sentence="Which Kueue the cluster runs is not known ({because}); predictions are those of {followed}.",
    remedy=(
        "let the functions read the Deployment kueue-controller-manager in kueue-system (kubectl apply -f "
        "docs/rbac.yaml), and give its image the tag of its release"
    ),
    found_in=("allocation/kueue_version.py",),
)
