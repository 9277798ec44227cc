"""Which metrics are there? One table: what is measured is made from it, and so is `docs/metrics.md`.

Every metric has the dimension `Cluster` besides those named here; the `Meter` adds it.
"""

from typing import Final

from taskgov.services.metric_form import (
    COUNT,
    PER_CAPACITY,
    PER_PREEMPTION,
    PER_QUANTILE,
    PER_QUOTA,
    PER_SEVERITY,
    PER_TEAM,
    PERCENT,
    SECONDS,
    WHOLE_CLUSTER,
    Metric,
)

NAMESPACE: Final = "TaskGovernance"

ALL_CLUSTERS: Final = "all clusters"
"""The `Cluster` of the values over all clusters, which alarms watch; no cluster has a name with a space."""

QUOTA_GUARANTEED: Final = Metric(
    "QuotaGuaranteed",
    COUNT,
    PER_QUOTA,
    "The team's nominal quota, leases included. While a lease is active, the property `leasedInstances` is the "
    "number of whole instances that are leased from others (above zero) or to others (below zero); `leasedParts` is "
    "the same for parts.",
    "ClusterQueue `spec.resourceGroups`; leases by the policy document and its plan",
)
QUOTA_USED: Final = Metric(
    "QuotaUsed",
    COUNT,
    PER_QUOTA,
    "What the team's admitted workloads hold, borrowed amounts included.",
    "ClusterQueue `status.flavorsReservation`",
)
BORROWED: Final = Metric(
    "Borrowed",
    COUNT,
    PER_QUOTA,
    "What the team holds above its guarantee, from the idle quota of others.",
    "used less guaranteed, less what is over quota",
)
LENT: Final = Metric(
    "Lent",
    COUNT,
    PER_QUOTA,
    "The team's idle quota that others hold. An attribution: in proportion to idle quota, ties by name, because a "
    "flat cohort has no counterparties. The sum over all teams equals that of `Borrowed`.",
    "attributed from the borrowers' `Borrowed`",
)
IDLE: Final = Metric(
    "Idle", COUNT, PER_QUOTA, "Quota that neither the team nor a borrower uses.", "guaranteed less own use, less `Lent`"
)
OVER_QUOTA: Final = Metric(
    "OverQuota",
    COUNT,
    PER_QUOTA,
    "What the team still holds above a quota that was lowered under running work, without a lender. Not borrowing.",
    "used less guaranteed, beyond what the lenders leave idle or the borrow limit allows",
)
BORROW_LIMIT_UTILIZATION: Final = Metric(
    "BorrowLimitUtilization",
    PERCENT,
    PER_QUOTA,
    "How much of its borrow limit the team uses. Absent without a limit, and with a limit of 0.",
    "`Borrowed` / ClusterQueue `borrowingLimit`",
    together="left out",
)
FAIR_SHARE_ENTITLEMENT: Final = Metric(
    "FairShareEntitlement",
    COUNT,
    PER_QUOTA,
    "What fair sharing would give the team now: its demand up to its guarantee, then idle quota by weight. Teams of "
    "weight 0 are entitled to what is left after all others, equally.",
    "quotas, weights and demand of all teams of the cohort",
)
FAIR_SHARE_DEVIATION: Final = Metric(
    "FairShareDeviation",
    COUNT,
    PER_QUOTA,
    "Used less entitled: above zero the team holds more than its share. The property `infiniteShare` is true for a "
    "team of weight 0 that borrows: its weighted share is infinite, and an infinite share is a flag, never a number.",
    "`QuotaUsed` - `FairShareEntitlement`",
)
PENDING_WORKLOADS: Final = Metric(
    "PendingWorkloads", COUNT, PER_TEAM, "Workloads that wait for quota.", "Workloads without a quota reservation"
)
PENDING_GPUS: Final = Metric(
    "PendingGpus", COUNT, PER_TEAM, "Accelerators that waiting workloads request.", "requests of their pod sets"
)
OLDEST_PENDING_SECONDS: Final = Metric(
    "OldestPendingSeconds",
    SECONDS,
    PER_TEAM,
    "How long the team's oldest waiting workload has waited; 0 if none waits.",
    "the workload's queueing time",
    together="max",
)
START_ESTIMATE_COVERAGE: Final = Metric(
    "StartEstimateCoverage",
    PERCENT,
    PER_QUANTILE,
    "Percentage of the team's last estimates of starts (at most 100) for which the job had started by the estimated "
    "time; good estimates have 50 at `P50` and 90 at `P90`. For teams with 20 or more outcomes, and for `all teams` "
    "together; not published when the last estimates are older than an hour.",
    "the stored estimates ([when.md](when.md#in-the-account))",
    together="left out",
)
TEAMS_STARVED: Final = Metric(
    "TeamsStarved",
    COUNT,
    WHOLE_CLUSTER,
    "Teams whose work waits, and that do not use their guarantee of the same instance type, while others of the cohort "
    "borrow it. A minute of it is normal: Kueue is about to reclaim. The property `teams` names the first ten.",
    "ClusterQueue quotas and usage, requests of waiting workloads",
)
PREEMPTIONS: Final = Metric(
    "Preemptions",
    COUNT,
    PER_PREEMPTION,
    "Preemptions of the team's workloads, each counted once, with Kueue's reason and the team that preempted "
    "(`unknown` if Kueue does not record it). Published only when there is one.",
    "Workload condition `Preempted`",
)
PREEMPTED_GPU_SECONDS: Final = Metric(
    "PreemptedGpuSeconds",
    SECONDS,
    PER_PREEMPTION,
    "Accelerators times seconds that preempted workloads had run since admission: at most this work is lost. "
    "Preemptions for which Kueue does not record it (evicted more than once, quota released) are left out.",
    "Workload conditions `Admitted` and `Preempted`, else `accumulatedPastExecutionTimeSeconds`",
)
CAPACITY_HEALTHY: Final = Metric(
    "CapacityHealthy",
    COUNT,
    PER_CAPACITY,
    "What the healthy nodes of the type offer. The property `instancesHealthy` counts the nodes.",
    "nodes that are ready, schedulable and healthy, times the type's numbers",
)
CAPACITY_UNHEALTHY: Final = Metric(
    "CapacityUnhealthy",
    COUNT,
    PER_CAPACITY,
    "What the other nodes of the type would offer.",
    "nodes that exist and are not healthy",
)
OVERCOMMIT: Final = Metric(
    "Overcommit",
    COUNT,
    PER_CAPACITY,
    "By how much the sum of all quotas exceeds the healthy capacity.",
    "sum of `QuotaGuaranteed` - `CapacityHealthy`, at least 0",
)
NODES_LOST: Final = Metric(
    "NodesLost",
    COUNT,
    WHOLE_CLUSTER,
    "Nodes of sudden losses above `guardrails.massLossPercent` that neither their provider nor a person has confirmed.",
    "Kubernetes, ListClusterNodes, DescribeCluster, and the memory of nodes",
)
QUOTA_DRIFT: Final = Metric(
    "QuotaDrift",
    COUNT,
    WHOLE_CLUSTER,
    "Quotas and cluster policies that differ from the plan when a run ends.",
    "changes of the plan that were not applied",
)
SECONDS_SINCE_LOOK: Final = Metric(
    "SecondsSinceLook",
    SECONDS,
    WHOLE_CLUSTER,
    "How long ago a run last read the cluster without an error. With `all clusters` as the cluster: the longest of all "
    "governed clusters (those with a policy document), 0 without one; no value if one of them cannot be determined.",
    "the table, written by `read_snapshot`",
)
PLANS_COMPUTED: Final = Metric("PlansComputed", COUNT, WHOLE_CLUSTER, "Runs that computed a plan.", "end of a run")
CHANGES_APPLIED: Final = Metric(
    "ChangesApplied",
    COUNT,
    WHOLE_CLUSTER,
    "Quotas and cluster policies that a run wrote; one that it wrote twice counts once.",
    "end of a run",
)
CHANGES_BLOCKED: Final = Metric(
    "ChangesBlocked",
    COUNT,
    WHOLE_CLUSTER,
    "Changes that a guardrail stopped, or that were not approved; 1 for a plan that was blocked before it had any.",
    "end of a run that is blocked, rejected or expired",
)
RUNS_UNFINISHED: Final = Metric(
    "RunsUnfinished", COUNT, WHOLE_CLUSTER, "Runs that began to write but could not write everything.", "end of a run"
)
RUNS_FAILED: Final = Metric(
    "RunsFailed", COUNT, WHOLE_CLUSTER, "Runs that failed before they wrote anything.", "end of a run"
)
EVENT_TO_APPLIED_SECONDS: Final = Metric(
    "EventToAppliedSeconds",
    SECONDS,
    WHOLE_CLUSTER,
    "The time from the event that caused a run to the end of that run, if it applied its plan.",
    "the event's time, the run's end",
)
FINDINGS: Final = Metric(
    "Findings",
    COUNT,
    PER_SEVERITY,
    "Findings of an audit, without muted ones; 0 is published too.",
    "audit",
)
FINDINGS_MUTED: Final = Metric(
    "FindingsMuted", COUNT, WHOLE_CLUSTER, "Findings of an audit that a mute suppresses.", "audit"
)
NOTICES_FAILED: Final = Metric(
    "NoticesFailed",
    COUNT,
    WHOLE_CLUSTER,
    "Topics of teams that could not be notified: their findings by an audit (the cluster's notice names them), or "
    "events of their tasks by a measurement (its log names them, and the next measurement tries again).",
    "audit; each minute's measurement, when there is one",
)
OBJECTS_UNREADABLE: Final = Metric(
    "ObjectsUnreadable",
    COUNT,
    WHOLE_CLUSTER,
    "Objects of Kubernetes and items of the table that cannot be read and are left out; findings name them.",
    "the form of each object; the table",
)
WORKLOADS_RELISTED: Final = Metric(
    "WorkloadsRelisted",
    COUNT,
    WHOLE_CLUSTER,
    "1 when a minute listed all workloads although it should have followed the changes; the property `why` has the "
    "reason. 0 when it followed them (`objectsRead`: how many Workloads it read). Not published on a cluster whose "
    "workloads fit on one page, and in the minute in which all are listed anyway, once an hour.",
    "each minute's read of the workloads ([scale.md](scale.md#following-workloads))",
)
AUDITS_MISSED: Final = Metric(
    "AuditsMissed",
    COUNT,
    WHOLE_CLUSTER,
    "1 when the audit of the cluster failed, whatever the reason; the others are audited anyway. 0 is published "
    "too. With `all clusters` as the cluster: 1 for each.",
    "audit",
)
CLUSTER_UNREADABLE: Final = Metric(
    "ClusterUnreadable",
    COUNT,
    WHOLE_CLUSTER,
    "1 when the cluster, or its policy document, could not be read; the log has the error and where it was "
    "raised. The other clusters are read anyway. 0 is published too. With `all clusters` as the cluster: 1 "
    "for each failure.",
    "each minute's measurement, the hourly resync, the end of a run",
)

METRICS: Final = (
    QUOTA_GUARANTEED,
    QUOTA_USED,
    BORROWED,
    LENT,
    IDLE,
    OVER_QUOTA,
    BORROW_LIMIT_UTILIZATION,
    FAIR_SHARE_ENTITLEMENT,
    FAIR_SHARE_DEVIATION,
    PENDING_WORKLOADS,
    PENDING_GPUS,
    OLDEST_PENDING_SECONDS,
    START_ESTIMATE_COVERAGE,
    TEAMS_STARVED,
    PREEMPTIONS,
    PREEMPTED_GPU_SECONDS,
    CAPACITY_HEALTHY,
    CAPACITY_UNHEALTHY,
    OVERCOMMIT,
    NODES_LOST,
    QUOTA_DRIFT,
    SECONDS_SINCE_LOOK,
    PLANS_COMPUTED,
    CHANGES_APPLIED,
    CHANGES_BLOCKED,
    RUNS_UNFINISHED,
    RUNS_FAILED,
    EVENT_TO_APPLIED_SECONDS,
    FINDINGS,
    FINDINGS_MUTED,
    NOTICES_FAILED,
    AUDITS_MISSED,
    OBJECTS_UNREADABLE,
    CLUSTER_UNREADABLE,
    WORKLOADS_RELISTED,
)
"""Every metric of the use cases, in the order of the documentation."""
