"""Findings of the audit beside those of the plan: what is wrong with quotas and with the work on them.

`audit_cluster` looks for them each night, `taskgov audit` at any time.
"""

from typing import Final

from taskgov.findings import Severity
from taskgov.findings.kind import FindingKind

QUOTA_DRIFT: Final = FindingKind(
    code="quota-drift",
    severity=Severity.WARNING,
    means="SageMaker has a different quota from what the document and the capacity require",
    sentence="The quota of {team} differs from the policy: {because}.",
    remedy="apply the plan",
    found_in=("audit/findings_quota.py",),
)
POLICY_DRIFT: Final = FindingKind(
    code="policy-drift",
    severity=Severity.WARNING,
    means="SageMaker has a different cluster policy from the one in the document",
    sentence="The cluster policy differs from the document: {because}.",
    remedy="apply the plan",
    found_in=("audit/findings_quota.py",),
)
QUEUE_DRIFT: Final = FindingKind(
    code="queue-drift",
    severity=Severity.WARNING,
    means="a ClusterQueue has a different nominal quota from its compute quota",
    sentence=(
        "The ClusterQueue of {team} has a nominal quota of {held} {resource} on {instance_type}, its compute quota "
        "says {wanted}."
    ),
    remedy="wait for the add-on to apply the compute quota, or find out what else writes the queue",
    found_in=("audit/findings_quota.py",),
)
POLICY_STATUS_STUCK: Final = FindingKind(
    code="policy-status-stuck",
    severity=Severity.ERROR,
    means="the cluster policy has a status that no update recovers, with the documented recovery",
    sentence="The cluster policy has status {status}: {reason}{parts}.",
    remedy="{recovery}",
    found_in=("audit/findings_quota.py",),
)
QUOTA_HELD_WITHOUT_NODES: Final = FindingKind(
    code="quota-without-nodes",
    severity=Severity.WARNING,
    means="quotas on a type without nodes",
    sentence="{teams} have quota on {instance_type}, and the cluster has no nodes of that type.",
    remedy="add nodes, or remove the type from the quotas: jobs on it are admitted and wait for nodes",
    found_in=("audit/findings_quota.py",),
)
BORROW_LIMIT_UNUSABLE: Final = FindingKind(
    code="borrow-limit-unusable",
    severity=Severity.INFO,
    means="a team may borrow a type that nobody else lends",
    sentence="{team} may borrow {instance_type}, and nobody else has any to lend.",
    remedy="give the shared pool some of the type, or set its BorrowLimit to 0",
    found_in=("audit/findings_quota.py",),
)
WEIGHT_ZERO: Final = FindingKind(
    code="weight-zero",
    severity=Severity.INFO,
    means="a borrower of weight 0, while others have a weight: it is always served last",
    sentence="{team} has fair-share weight 0 beside teams with a weight: it borrows last and is reclaimed first.",
    remedy="give it a weight if that is not intended",
    found_in=("audit/findings_quota.py",),
)
NOMINAL_ABOVE_ALLOCATABLE: Final = FindingKind(
    code="nominal-above-allocatable",
    severity=Severity.WARNING,
    means="quotas guarantee more vCPU or memory than nodes offer to pods",
    sentence="Quotas guarantee {amounts} of {instance_type}: {percent} % of what nodes offer to pods.",
    remedy="set capacity.basis: allocatable, or keep requests below what a node offers",
    found_in=("audit/findings_quota.py",),
)
STARVED: Final = FindingKind(
    code="starved-while-another-borrows",
    severity=Severity.ERROR,
    means="work waits, its guarantee is unused, others borrow: so many GPUs are reclaimable",
    sentence=(
        "{team} waits for {waiting} accelerators and uses {own_use} of its {guaranteed} {instance_type}, while others "
        "borrow {borrowed} ({reclaimable} can be reclaimed)."
    ),
    remedy="find out why its workloads are not admitted (taskgov explain)",
    found_in=("audit/findings_work.py",),
)
HOARDING: Final = FindingKind(
    code="hoarding",
    severity=Severity.WARNING,
    means="a team that lends nothing leaves quota unused while others wait",
    sentence=(
        "{team} leaves {idle} of {guaranteed} accelerators on {instance_type} unused and lends none (DontLend), while "
        "{waiting} wait."
    ),
    remedy="set its Strategy to Lend",
    found_in=("audit/findings_work.py",),
)
OVER_QUOTA: Final = FindingKind(
    code="over-quota",
    severity=Severity.INFO,
    means="running work above a quota that was lowered",
    sentence=(
        "{team} holds {used} accelerators on {instance_type}, {over_quota} above its quota of {guaranteed} and not "
        "borrowed: its quota was lowered under running work."
    ),
    remedy="nothing is evicted for it; it ends with the work",
    found_in=("audit/findings_work.py",),
)
IDLE_QUOTA: Final = FindingKind(
    code="idle-quota",
    severity=Severity.INFO,
    means="whole instances that were not used at any moment of a week",
    sentence="{team} used {peak:g} of {count} {instance_type} at most in {hours:g} h: {idle} were never used.",
    remedy="lower the quota, or enable demand-aware rebalancing",
    found_in=("audit/findings_work.py",),
)
REQUEST_NEVER_FITS: Final = FindingKind(
    code="request-never-fits",
    severity=Severity.ERROR,
    means="a pod requests more than any node's allocatable",
    sentence="A pod of {workload} requests more than any node offers: {lacking}.",
    remedy="request at most what a node offers to pods (its allocatable), which is less than the type's numbers",
    found_in=("usage/never_fits.py",),
)
EVICTION_LOOP: Final = FindingKind(
    code="eviction-loop",
    severity=Severity.WARNING,
    means="a workload was evicted three times or more",
    sentence="{workload} was evicted {times} times ({reasons}).",
    remedy="raise its priority, its team's quota or its checkpoint frequency, or end it",
    found_in=("audit/findings_work.py",),
)
PREEMPTION_LOOP: Final = FindingKind(
    code="preemption-loop",
    severity=Severity.ERROR,
    means="workloads that would preempt one another forever, as predicted by the scheduling model",
    sentence=(
        "Workloads would preempt one another forever if nothing else happened ({teams}): {workloads} would be "
        "preempted and come back, again and again, for {preemptors}."
    ),
    remedy="{advice}",
    found_in=("audit/findings_work.py",),
)
LOOPS_NOT_SEARCHED: Final = FindingKind(
    code="preemption-loop-unknown",
    severity=Severity.INFO,
    means="whether workloads would preempt one another forever is not known: the cluster is too large for the search",
    sentence=(
        "Whether workloads would preempt one another forever is not known: after {steps} model steps the queues of the "
        "simulated cluster were not at rest."
    ),
    remedy=(
        "watch for eviction-loop, which counts evictions that have happened; the search is complete again with fewer "
        "waiting workloads"
    ),
    found_in=("audit/findings_work.py",),
)
MUTE_ENDED: Final = FindingKind(
    code="mute-ended",
    severity=Severity.WARNING,
    means="a mute of the document has ended; its findings are sent again",
    sentence="The mute of {finding} about {about} ({reason}) ended {ended}: {what}.",
    remedy="remove it from audit.mute, or give it a later `until` and a reason that still applies",
    found_in=("audit/severity.py",),
)
REMEDIES_UNKNOWN: Final = FindingKind(
    code="remedies-unknown",
    severity=Severity.INFO,
    means="it is not known which findings the plan would remedy, with the reason",
    sentence=(
        "Which findings the {changes} changes of plan {plan_id} would remedy is not known: the cluster as they leave "
        "it cannot be put together ({error})."
    ),
    remedy="compare the plan's changes with the findings yourself, and report it to the maintainers of taskgov",
    found_in=("audit/finding_report.py",),
)
NOTICE_TOPIC_REFUSED: Final = FindingKind(
    code="notice-topic-refused",
    severity=Severity.WARNING,
    means="a team's topic to which the stack may not write",
    sentence="The topic of {team} is {topic}, and the stack may only write to those that begin with {prefix}.",
    remedy="name another topic in notices, or deploy the stack with its prefix as TeamTopicPrefix",
    found_in=("audit/finding_report.py",),
)
QUOTAS_ADVISED: Final = FindingKind(
    code="quotas-advised",
    severity=Severity.INFO,
    means="other quotas, limits or preemption rules would have suited the recorded work better",
    sentence="{instance_type}: {advised} would have served the recorded work better: {because}.",
    remedy="look at the proof in the report, and write the changed document with taskgov advise (docs/advise.md)",
    found_in=("audit/quota_advice.py",),
)
SERIES_CUT: Final = FindingKind(
    code="metric-series-cut",
    severity=Severity.WARNING,
    means="teams without metrics of their own: the cluster has more metric series than the stack publishes",
    sentence=(
        "{cut} of {teams} teams have no metrics of their own and are published together, as Team={other}: with all of "
        "them the cluster would have {wanted} metric series, and MaxSeries is {limit}."
    ),
    remedy=(
        "deploy the stack with MaxSeries of {wanted} or more (CloudWatch bills each series), or leave it: teams that "
        "use something or wait come first, and the report has all of them"
    ),
    found_in=("services/series_cap.py",),
)
UNREADABLE_LOCK: Final = FindingKind(
    code="unreadable-lock",
    severity=Severity.ERROR,
    means="the lock of the cluster cannot be read; it counts as held, so that no run starts",
    sentence="{item}. The lock counts as held, so that no run starts",
    remedy="correct the attribute in the table, or remove lockOwner and lockExpires; see docs/architecture.md",
    found_in=("services/audit_cluster.py",),
)
