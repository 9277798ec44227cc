"""What the use cases need from the world, by what it is needed for. Adapters and backends implement it."""

from taskgov.ports.clock import Clock
from taskgov.ports.clusters import (
    ClusterAccess,
    ClusterBackend,
    ClusterTags,
    Kept,
    KubernetesApi,
    Machines,
    OnUnreadableObject,
    QuotaStore,
    WorkloadsApi,
    WorkloadsKnown,
    WorkloadsRead,
    Written,
)
from taskgov.ports.documents import DocumentStore, PolicyText, StoredVersion, VersionedDocuments
from taskgov.ports.orders import Answer, ApprovalRequest, OrderBook
from taskgov.ports.outlets import EventBus, Measurement, Meter, Notices, TeamTopics
from taskgov.ports.runs import (
    ENDED,
    LOCK_SECONDS,
    LOOKS_OLD_SECONDS,
    TURN_SECONDS,
    Dirty,
    Execution,
    Lock,
    RunRecord,
    Workflow,
)
from taskgov.ports.state import OnUnreadable, StateStore

__all__ = [
    "ENDED",
    "LOCK_SECONDS",
    "LOOKS_OLD_SECONDS",
    "TURN_SECONDS",
    "Answer",
    "ApprovalRequest",
    "Clock",
    "ClusterAccess",
    "ClusterBackend",
    "ClusterTags",
    "Dirty",
    "DocumentStore",
    "EventBus",
    "Execution",
    "Kept",
    "KubernetesApi",
    "Lock",
    "Machines",
    "Measurement",
    "Meter",
    "Notices",
    "OnUnreadable",
    "OnUnreadableObject",
    "OrderBook",
    "PolicyText",
    "QuotaStore",
    "RunRecord",
    "StateStore",
    "StoredVersion",
    "TeamTopics",
    "VersionedDocuments",
    "Workflow",
    "WorkloadsApi",
    "WorkloadsKnown",
    "WorkloadsRead",
    "Written",
]
