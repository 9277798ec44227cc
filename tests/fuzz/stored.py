"""What runs, the schedule and audits left in the bucket, damaged: whoever reads it next handles it, or refuses it."""

import gzip
import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from random import Random
from typing import Any

import yaml

from tests.fuzz.handlers import Functions, run
from tests.fuzz.mutation import mutated, written
from tests.fuzz.samples import RICH, busy
from tests.support.clusters import GovernedCluster
from tests.support.memory import CLUSTER_ARN, InMemoryDocuments

POLICY = "policies/ml-cluster.yaml"
GZIP = ".gz"
AUDIT = {"clusterArn": CLUSTER_ARN, "runId": "audit-1"}


@cache
def left() -> tuple[Mapping[str, bytes], GovernedCluster]:
    """Return what two runs, half an hour of measurements and an audit leave of a cluster that lost a node."""
    cluster = busy()
    cluster.documents.stored[POLICY] = yaml.safe_dump(RICH).encode()
    call = Functions(cluster)
    run(call, "run-1")
    cluster.kubernetes.node_objects = cluster.kubernetes.node_objects[:-1]
    for _ in range(3):
        cluster.clock.advance(minutes=10)
        call("publish_usage", {})
    run(call, "run-2")
    call("audit_cluster", AUDIT)
    return dict(cluster.documents.stored), cluster


def samples() -> list[str]:
    """Return the documents that are read again."""
    stored, _ = left()
    return sorted(key for key in stored if key.startswith(("memory/", "work/")))


def read_what_was_stored(draw: Random) -> None:
    """Damage up to two documents, and let a run, the schedule or an audit read them half an hour later."""
    stored, before = left()
    cluster = GovernedCluster(
        hyperpod=before.hyperpod,
        kubernetes=before.kubernetes,
        documents=InMemoryDocuments(),
        state=deepcopy(before.state),
        used=before.used,
        workloads=before.workloads,
    )
    cluster.documents.stored.update(stored)
    cluster.clock.advance(hours=1)
    for key in draw.sample(samples(), draw.choice((1, 1, 2))):
        cluster.documents.stored[key] = _damaged(key, stored[key], draw)
    call = Functions(cluster)
    match draw.randrange(4):
        case 0:
            run(call, "run-3")
        case 1:
            call("publish_usage", {})
        case 2:
            call("estimate_starts", {"clusterArn": CLUSTER_ARN})
        case _:
            call("audit_cluster", AUDIT)


def _damaged(key: str, stored: bytes, draw: Random) -> bytes:
    text = gzip.decompress(stored) if key.endswith(GZIP) else stored
    if ".jsonl" in key:
        lines: Any = mutated([json.loads(line) for line in text.splitlines()], draw)
        found = b"\n".join(written(line, draw) for line in lines) if isinstance(lines, list) else written(lines, draw)
    else:
        found = written(mutated(json.loads(text), draw), draw)
    return gzip.compress(found, compresslevel=1) if key.endswith(GZIP) and draw.random() < 0.95 else found


def read_a_snapshot(draw: Random) -> None:
    """Plan from a snapshot that is damaged."""
    stored, _ = left()
    sample = next(json.loads(body) for key, body in stored.items() if key.startswith("snapshots/"))
    cluster = GovernedCluster()
    pointer = cluster.documents.put("snapshots/x.json", written(mutated(sample, draw), draw), "")
    Functions(cluster)("plan_quotas", {"snapshot": pointer.to_json(), "applyMode": "plan", "needsApprover": False})
