"""Under which key does each item of the table stand? `docs/architecture.md`, "Stores", says what each of them holds.

The state machine and the roles in `template.yaml` name the same keys; tests hold them to these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from datetime import datetime

ItemKey = dict[str, str]

CLUSTER: Final = "CLUSTER#"
QUOTA: Final = "QUOTA#"
APPROVAL: Final = "APPROVAL#"
DOCUMENT: Final = "DOCUMENT#"
ORDER: Final = "ORDER#"
SWITCH: Final = "SWITCH"
PARTITIONS: Final = (CLUSTER, QUOTA, APPROVAL, DOCUMENT, ORDER, SWITCH)
"""How partition keys begin; the switch's is the whole key."""
RUN: Final = "RUN#"
EDIT: Final = "EDIT#"
REFUSED: Final = "REFUSED#"
STATE: Final = "STATE"

STOP_SWITCH: Final[ItemKey] = {"pk": SWITCH, "sk": "STOP"}


def cluster(cluster_arn: str) -> str:
    """Return the partition key of all items of a cluster."""
    return f"{CLUSTER}{cluster_arn}"


def _of_cluster(cluster_arn: str, sort_key: str) -> ItemKey:
    return {"pk": cluster(cluster_arn), "sk": sort_key}


def state(cluster_arn: str) -> ItemKey:
    """Return the key of generation, lock and request for approval."""
    return _of_cluster(cluster_arn, STATE)


def lineage(cluster_arn: str) -> ItemKey:
    """Return the key of whose records these are."""
    return _of_cluster(cluster_arn, "LINEAGE")


def applied_quota(cluster_arn: str, quota_id: str) -> ItemKey:
    """Return the key of what was last applied of a quota."""
    return _of_cluster(cluster_arn, f"{QUOTA}{quota_id}")


def applied_policy(cluster_arn: str) -> ItemKey:
    """Return the key of what was last written to the cluster policy."""
    return _of_cluster(cluster_arn, "POLICY")


def edit(cluster_arn: str, quota_id: str) -> ItemKey:
    """Return the key of who last changed a quota by hand."""
    return _of_cluster(cluster_arn, f"{EDIT}{quota_id}")


def refused(cluster_arn: str, subject: str) -> ItemKey:
    """Return the key of a write that was refused for good."""
    return _of_cluster(cluster_arn, f"{REFUSED}{subject}")


def run(cluster_arn: str, started_at: datetime, run_id: str) -> ItemKey:
    """Return the key of the record of a run."""
    return _of_cluster(cluster_arn, f"{RUN}{started_at.isoformat()}#{run_id}")


def once(cluster_arn: str, identity: str) -> ItemKey:
    """Return the key of what is counted or sent once."""
    return _of_cluster(cluster_arn, f"ONCE#{identity}")


def turn(cluster_arn: str) -> ItemKey:
    """Return the key of the turn to notify teams."""
    return _of_cluster(cluster_arn, "TELLING")


def look(cluster: str) -> ItemKey:
    """Return the key of when a run last read the cluster (ARN, or the name of an EKS cluster's document)."""
    return _of_cluster(cluster, "LOOK")


def owner(quota_id: str) -> ItemKey:
    """Return the key under which the cluster of a quota or cluster policy stands."""
    return {"pk": f"{QUOTA}{quota_id}", "sk": "CLUSTER"}


def request(cluster_arn: str, plan_id: str) -> ItemKey:
    """Return the key of a request for approval; the item holds a task token."""
    return {"pk": f"{APPROVAL}{cluster_arn}", "sk": f"{APPROVAL}{plan_id}"}


def document(cluster_name: str, version: str) -> ItemKey:
    """Return the key of who is behind a version of a policy document."""
    return {"pk": f"{DOCUMENT}{cluster_name}", "sk": f"VERSION#{version}"}


def order(cluster_arn: str, at: datetime, order_id: str) -> ItemKey:
    """Return the key of an order to write by hand, or to free a lock."""
    return {"pk": f"{ORDER}{cluster_arn}", "sk": f"{ORDER}{at.isoformat()}#{order_id}"}
