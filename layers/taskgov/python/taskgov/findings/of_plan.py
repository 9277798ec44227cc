"""Findings of a plan about promises, capacity, quotas and writes. Each run and each audit looks for them.

What is wrong with the records, the objects or the document that a plan is made from is in `of_state`.
"""

from typing import Final

from taskgov.findings import Severity
from taskgov.findings.kind import ByCase, FindingKind

OVER_COMMITMENT: Final = FindingKind(
    code="over-commitment",
    severity=Severity.WARNING,
    means="quotas guarantee more of a type than is usable",
    sentence="Quotas guarantee {guaranteed} {instance_type}{by}, {usable} are usable{share}: {capacity}.",
    remedy="lower quotas, bring nodes back, or declare capacity.overcommitPercent",
    found_in=("allocation/overcommitment.py",),
)
ORCHESTRATED_ELSEWHERE: Final = FindingKind(
    code="orchestrated-elsewhere",
    severity=Severity.WARNING,
    means="Kueue itself sets a queue's quota (`status.effectiveQuotas`): it is read, and left alone",
    sentence="The quota of {team} is set in Kueue by {orchestrator}: the plan leaves it alone.",
    remedy="let only one set quotas: remove the queue from the orchestrator's tree, or the team from the document",
    found_in=("allocation/orchestrated.py",),
)
CAPACITY_SHORTAGE: Final = FindingKind(
    code="capacity-shortage",
    severity=Severity.WARNING,
    means="guaranteed quotas exceed capacity, and are cut by tier",
    sentence="Guarantees exceed capacity: {short}. Tiers give, the highest number first.",
    remedy="bring nodes back, lower quotas, or declare capacity.overcommitPercent",
    found_in=("allocation/allocate.py",),
)
FLOORS_EXCEED_CAPACITY: Final = FindingKind(
    code="floors-exceed-capacity",
    severity=Severity.INCIDENT,
    means="not even the floors fit; they are scaled down",
    sentence="Not even the floors fit: {short}. They are scaled down in proportion.",
    remedy="bring nodes back, or lower floors in the policy document",
    found_in=("allocation/allocate.py",),
)
MASS_LOSS: Final = FindingKind(
    code="mass-loss",
    severity=Severity.INCIDENT,
    means="nodes were lost suddenly, without confirmation; the evidence shows what Kubernetes and the provider list",
    sentence="{loss}",
    remedy=(
        "see whether Kubernetes and the provider list their nodes; bring the nodes back, or remove them at the "
        "provider, or approve the plan that lowers the quotas"
    ),
    found_in=("allocation/mass_loss.py",),
)
CAPACITY_ENDS: Final = FindingKind(
    code="capacity-ends",
    severity=Severity.WARNING,
    means="a training plan or Capacity Block ends within `capacity.noticeBeforeEndHours`: what each team loses",
    sentence=(
        "The {kind} {name} ends at {ends_at:%Y-%m-%d %H:%M} UTC, and its nodes ({nodes}) are taken back from "
        "{leaves_at:%H:%M} UTC on. {costs}."
    ),
    remedy="extend it, add other nodes, or let work finish before that time: later plans do not count these nodes",
    found_in=("allocation/capacity_ends.py",),
)
CAPACITY_END_UNKNOWN: Final = FindingKind(
    code="capacity-end-unknown",
    severity=ByCase(
        "info if it is not known whether there are Capacity Blocks, otherwise warning",
        lambda is_known: Severity.WARNING if is_known else Severity.INFO,
    ),
    means="the end of a training plan or Capacity Block cannot be read: an end that was read earlier still applies",
    sentence="The end of {what} cannot be read: {silence}. {until}.",
    remedy="grant the permissions that taskgov doctor reports as missing, or check the state of the reservation",
    found_in=("allocation/capacity_ends.py",),
)
QUOTA_WITHOUT_NODES: Final = FindingKind(
    code="quota-without-nodes",
    severity=Severity.WARNING,
    means="quotas on a type without nodes",
    sentence="{teams} have quotas on {instance_type}, and the cluster has no nodes of that type.",
    remedy="add nodes, remove the quota, or declare capacity.overcommitPercent until the nodes arrive",
    found_in=("allocation/allocate.py",),
)
FAMILY_WITHOUT_NODES: Final = FindingKind(
    code="family-without-nodes",
    severity=Severity.WARNING,
    means="a quota on a family without nodes",
    sentence="{team} has a quota on {family}, and no node of the cluster can serve it.",
    remedy="add nodes, correct the family, or remove the quota",
    found_in=("allocation/families.py",),
)
SHARE_ROUNDS_TO_NOTHING: Final = FindingKind(
    code="share-rounds-to-nothing",
    severity=Severity.WARNING,
    means="a share is less than one unit",
    sentence="{team} has no {instance_type}: {words}.",
    remedy="count the share in smaller parts (unit: accelerators), give it a floor, or a larger share",
    found_in=("allocation/allocate.py",),
)
LEASE_REFUSED: Final = FindingKind(
    code="lease-refused",
    severity=Severity.WARNING,
    means="a lease cannot be given, and why",
    sentence="The lease of {what} ({reason}) is refused: {refusal}.",
    remedy="choose another donor or a smaller count, write partial: true, or end the lease",
    found_in=("allocation/lending.py",),
)
LEASE_BEYOND_END: Final = FindingKind(
    code="lease-refused",
    severity=Severity.WARNING,
    means="a lease lasts longer than the machines that it consists of: field, value and rule",
    sentence=(
        "The lease of {what} ({reason}) is refused: {path}: {value} {rule}, when {reservation} takes back its "
        "{instance_type}, and the donor can no longer give it."
    ),
    remedy="end the lease before, or extend the training plan or Capacity Block",
    found_in=("allocation/lease_ends.py",),
)
LEASE_PARTIAL: Final = FindingKind(
    code="lease-partial",
    severity=Severity.WARNING,
    means="a lease with `partial: true` is given in part, with the numbers",
    sentence="The lease of {what} ({reason}) is given in part: {donor} can give {given}.",
    remedy="choose another donor for the rest",
    found_in=("allocation/lending.py",),
)
DEMAND_NEVER_MOVES: Final = FindingKind(
    code="demand-never-moves",
    severity=Severity.INFO,
    means="a fixed quota is not used in full, and `maxMovePercent` of it is less than one instance",
    sentence=(
        "{team} does not use all of its {count} {instance_type}, and demand never moves any: {percent:g} % of {count} "
        "is less than one instance."
    ),
    remedy="set demand.maxMovePercent to {smallest_percent:g} or more, or lower the quota",
    found_in=("allocation/demand.py",),
)
BUDGET_THRESHOLD: Final = FindingKind(
    code="budget-threshold",
    severity=ByCase(
        "error from 100 % on, otherwise warning",
        lambda percent: Severity.ERROR if percent >= 100 else Severity.WARNING,
    ),
    means="a budget passed a threshold, and its effect on borrowing",
    sentence=(
        "{team} used {used} of {budget} GPU-hours a {period} since {since:%Y-%m-%d %H:%M} UTC "
        "({percent:.0f} %, threshold {threshold} %){borrowing}."
    ),
    remedy="use less, or raise the budget in the policy document",
    found_in=("allocation/budgets.py",),
)
BUDGET_NOT_MEASURED: Final = FindingKind(
    code="budget-not-measured",
    severity=Severity.INFO,
    means="a budget has no measurement yet",
    sentence="The budget of {team} ({budget} GPU-hours a {period}) is not measured yet.",
    remedy="wait for the first measurement, or check that the schedule of publish_usage runs",
    found_in=("allocation/budgets.py",),
)
BORROWING_UNKNOWN: Final = FindingKind(
    code="borrowing-not-resumed",
    severity=Severity.WARNING,
    means="a borrow limit of 0 that a budget may have set: the earlier limit is not known",
    sentence=(
        "The borrow limit of {team} is 0. Its record is of an earlier version: it does not say whether a budget set "
        "that, and what to return to.{before}"
    ),
    remedy="state ResourceSharingConfig of {team} in the policy document",
    found_in=("allocation/budgets.py",),
)
BORROWING_LEFT_ALONE: Final = FindingKind(
    code="borrowing-not-resumed",
    severity=Severity.WARNING,
    means="a borrow limit of 0 that a budget set does not end with the period, because the quota is left alone",
    sentence=(
        "{team} is within its budget again, and its quota still has the borrow limit 0 of before: it is left alone, "
        "because {because}."
    ),
    remedy="set {setting} by hand, or let the quota be governed",
    found_in=("allocation/budgets.py",),
)
TOO_MANY_TYPES: Final = FindingKind(
    code="too-many-types",
    severity=Severity.WARNING,
    means="a quota has no row left for some of its instance types",
    sentence="{team} has more than {most} instance types; its quota has nothing of {types}.",
    remedy="give these types to other teams, or split the team",
    found_in=("allocation/plan_findings.py",),
)
TEAM_NOT_IN_POLICY: Final = FindingKind(
    code="team-not-in-policy",
    severity=Severity.INFO,
    means="a team with a quota is not in the document",
    sentence="{team} is not in the policy document: its quota is left as it is.",
    remedy="add the team to the policy document, or delete its quota",
    found_in=("allocation/governed.py",),
)
TEAM_FROZEN: Final = FindingKind(
    code="team-frozen",
    severity=Severity.INFO,
    means="a frozen team is left as it is",
    sentence="{team} is frozen by guardrails.freeze: its quota is left as it is.",
    remedy="remove it from guardrails.freeze when it may change",
    found_in=("allocation/governed.py",),
)
UNKNOWN_SETTINGS: Final = FindingKind(
    code="unknown-settings",
    severity=Severity.WARNING,
    means="a quota has settings that this release does not support; an update would delete them",
    sentence="The quota {quota} has settings that this release does not support ({settings}): it is left as it is.",
    remedy="deploy a release that supports them, or remove them from the quota",
    found_in=("allocation/governed.py",),
)
SECOND_QUOTA: Final = FindingKind(
    code="second-quota",
    severity=Severity.WARNING,
    means="a team has more than one quota",
    sentence="{team} has a second quota {quota}: only {governed} is governed.",
    remedy="delete one of the two quotas",
    found_in=("allocation/governed.py",),
)
QUOTA_DISABLED: Final = FindingKind(
    code="quota-disabled",
    severity=Severity.WARNING,
    means="a quota is switched off",
    sentence="The quota {quota} is switched off, and is left as it is.",
    remedy="enable the quota, or delete it",
    found_in=("allocation/governed.py",),
)
QUOTA_STATUS_STUCK: Final = FindingKind(
    code="quota-status-stuck",
    severity=Severity.ERROR,
    means=(
        "a quota's status that no update recovers, with the documented recovery; a plan deletes a governed one and "
        "creates it again in a later wave"
    ),
    sentence="The quota {quota} has status {status}: {reason}",
    remedy="{recovery}",
    found_in=("allocation/governed.py", "audit/findings_quota.py"),
)
QUOTA_IN_FLIGHT: Final = FindingKind(
    code="quota-in-flight",
    severity=Severity.INFO,
    means="HyperPod is creating or updating a quota, which refuses writes until then; planned again after 5 minutes",
    sentence="The quota {quota} has status {status}, and is left as it is until it has settled.",
    remedy="wait until it has settled; the next run plans it",
    found_in=("allocation/governed.py",),
)
BETWEEN_WRITES: Final = FindingKind(
    code="between-writes",
    severity=Severity.WARNING,
    means="a run was interrupted after the first of a quota's two writes",
    sentence="A run was interrupted after the first of the two writes of {quota}: it has less than before.",
    remedy="let the plan be applied: it continues from there",
    found_in=("allocation/governed.py",),
)
_CO_OWNED: Final = "The quota {quota} was last changed by {tool}, as {who}, "
CO_OWNED_LEFT: Final = FindingKind(
    code="co-owned-quota",
    severity=Severity.WARNING,
    means="infrastructure as code changed a quota last, with `coOwned: keep`",
    sentence=_CO_OWNED + "which would undo what is written here: it is left as it is.",
    remedy="let {tool} ignore the quota's configuration (docs/terraform.md) and set coOwned: govern, or take the "
    "team out of the policy document",
    found_in=("allocation/governed.py",),
)
CO_OWNED_GOVERNED: Final = FindingKind(
    code="co-owned-quota",
    severity=Severity.INFO,
    means="the same with `coOwned: govern`",
    sentence=_CO_OWNED + "and is governed anyway.",
    remedy="let {tool} ignore the quota's configuration (docs/terraform.md), or it undoes what is written here",
    found_in=("allocation/governed.py",),
)
_EDITED: Final = "{who} changed the quota {quota} by hand (version {before} -> {after}): "
EDIT_LEFT: Final = FindingKind(
    code="edited-by-hand",
    severity=Severity.WARNING,
    means="who changed which quota, with `handEdits: keep`",
    sentence=_EDITED + "it is left as it is.",
    remedy="write it into the policy document, or set handEdits: putRight",
    found_in=("allocation/governed.py",),
)
EDIT_ADOPTED: Final = FindingKind(
    code="edited-by-hand",
    severity=Severity.WARNING,
    means="the same with `handEdits: adopt`",
    sentence=_EDITED + "the edit is the new guarantee.",
    remedy="write it into the policy document, so that both agree",
    found_in=("allocation/governed.py",),
)
EDIT_PUT_RIGHT: Final = FindingKind(
    code="edited-by-hand",
    severity=Severity.WARNING,
    means="the same with `handEdits: putRight`",
    sentence=_EDITED + "it is corrected.",
    remedy="change the policy document instead of the quota",
    found_in=("allocation/governed.py",),
)
