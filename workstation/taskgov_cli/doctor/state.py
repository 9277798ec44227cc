"""Whose state the stack's records of the cluster are, and whether another stack governs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3

from taskgov.adapters.dynamodb import Table
from taskgov.adapters.s3 import Bucket
from taskgov.bootstrap.aws import CONFIG
from taskgov.bootstrap.backends import backends
from taskgov.snapshot.identity import claims_of, said_claim
from taskgov_cli.doctor.diagnosis import Diagnosis, failed, ok, unknown, warning
from taskgov_cli.doctor.facts import Governor, Unknown

if TYPE_CHECKING:
    from taskgov_cli.doctor.facts import Names, Read


def read_governor(cluster_arn: str, table_name: str, bucket_name: str) -> Governor:
    """Read the table and the cluster's tags. Raises GovernanceError."""
    table = Table(boto3.resource("dynamodb", config=CONFIG).Table(table_name))
    documents = Bucket(boto3.client("s3", config=CONFIG), bucket_name)
    return Governor(table.stamp(cluster_arn), claims_of(backends(documents).tags(cluster_arn)))


def governor(found: Read[Governor], names: Names) -> Diagnosis:
    """Check that this stack governs the cluster, or nobody does yet, and that its state was not restored."""
    check = "governor"
    if isinstance(found, Unknown):
        return unknown(check, found.reason)
    stamp, claims = found.stamp, found.claims
    hand_over = f"taskgov govern {names.cluster} --stack {names.stack} --yes"
    if claims and (stamp is None or claims[0].lineage != stamp.lineage):
        note = "Only when that stack is gone, or its ApplyMode is plan; see docs/runbooks/restored-state.md."
        return failed(check, f"{said_claim(claims[0])} governs {names.cluster}", hand_over, note=note)
    if stamp is None:
        return ok(check, f"no run has read {names.cluster} yet, and no stack has tagged it")
    mine = f"lineage {stamp.lineage}, serial {stamp.serial}"
    if stamp.restored is not None:
        because = f"{mine}: state found restored at {stamp.restored.at:%Y-%m-%d %H:%M} UTC ({stamp.restored.loss})"
        return warning(check, because, note="See docs/runbooks/restored-state.md.")
    if len(claims) > 1:
        return warning(
            check, f"{mine}; {said_claim(claims[1])} has tagged the cluster too, and writes nothing", hand_over
        )
    return ok(check, f"this stack governs the cluster ({mine})" if claims else f"{mine}; no stack has written yet")
