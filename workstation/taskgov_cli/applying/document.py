"""Put a policy document into force: store it in the stack's bucket, and see what its run makes of it.

Nothing bypasses the stack: the bucket's event starts the run, which reads, plans, checks, requests approval,
applies and verifies as always.
"""

from __future__ import annotations

import hashlib
import re
import time
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import boto3

from taskgov import keys
from taskgov.adapters.clock import SystemClock
from taskgov.adapters.errors import translated
from taskgov.adapters.s3 import POLICY_KEY
from taskgov.allocation.codec import changes_sha256, plan_from_json
from taskgov.bootstrap.aws import CONFIG
from taskgov.contracts.orders import DocumentOrder
from taskgov.contracts.steps import Pointer
from taskgov.errors import NotFoundError
from taskgov_cli.deployed import RefusedError
from taskgov_cli.history import runs
from taskgov_cli.orders import give
from taskgov_cli.review import comment

if TYPE_CHECKING:
    from collections.abc import Callable

    from mypy_boto3_s3.type_defs import HeadObjectOutputTypeDef

    from taskgov.allocation.plan import Plan
    from taskgov.policy.document import ClusterRef
    from taskgov_cli.deployed import Deployed
    from taskgov_cli.review.forge import Forge

LOOK_EVERY: Final = 5
"""Seconds between two searches for the run."""
NEEDS_APPROVAL: Final = "needs-approval"
STOPPED: Final = "stopped"
"""A run that was broken off says nothing of the document: another one follows."""
NO_CHANGES: Final = hashlib.sha256(b"[]").hexdigest()
"""Digest of a plan without changes."""
_REVIEWED: Final = re.compile(r"(plan-[0-9a-f]{16}):([0-9a-f]{64})")
UNLOCKED: Final = "unlocked"
"""Among the runs, and none: a person freed the lock."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of the document: the run's outcome, its plan, and what went wrong."""

    outcome: str
    plan_id: str | None = None
    error: str | None = None


def tag_of(place: Deployed, cluster_name: str) -> str | None:
    """Return the ETag of the document that is in force; None where there is none. Raises GovernanceError."""
    try:
        return _head(place, POLICY_KEY.format(cluster_name))["ETag"]
    except NotFoundError:
        return None


@dataclass(frozen=True, slots=True)
class Review:
    """The review of a document: the changes that were read, by digest, and who is said to have written it."""

    plan_id: str | None = None
    changes: str | None = None
    claim: str = ""

    @classmethod
    def of(cls, reviewed: str | None, claim: str) -> Review:
        """Read `PLAN_ID:DIGEST`, the last line of the plan's comment. Raises ValueError for anything else."""
        if reviewed is None:
            return cls(claim=claim)
        found = _REVIEWED.fullmatch(reviewed)
        if found is None:
            raise ValueError(f"{reviewed} is not PLAN_ID:DIGEST, as the comment of `taskgov plan` ends")
        return cls(found[1], found[2], claim)

    @classmethod
    def on(cls, forge: Forge, about: str, claim: str) -> Review:
        """Read the comment on the request that this commit was merged with, and who opened that.

        A request without a comment changes nothing (`taskgov review`). Raises GovernanceError.
        """
        request = forge.request()
        said = claim or f"{request.author}, {request.name}"
        found = comment.reviewed(forge, request, about)
        return cls(changes=NO_CHANGES, claim=said) if found is None else cls.of(found, said)

    def require(self, plan: Plan) -> None:
        """Raise RefusedError when another plan was reviewed than this one."""
        if self.changes is None:
            return
        # A plan without changes is called by its snapshot, which is another one each time.
        is_same = changes_sha256(plan) == self.changes and (not plan.changes or plan.plan_id == self.plan_id)
        if not is_same:
            raise RefusedError(
                f"{self.plan_id or 'a plan without changes'} was reviewed, and the document leads to {plan.plan_id} "
                "now: the document or the cluster has changed. Nothing was written. Store a new snapshot "
                f"(taskgov reconcile {plan.cluster_name}), and review the new plan"
            )


@dataclass(frozen=True, slots=True)
class Written:
    """A document that was stored: whose it is, its version, and when by the clock of S3."""

    cluster_arn: str
    cluster_name: str
    version: str
    at: datetime


def store(place: Deployed, cluster: ClusterRef, text: str, *, replaces: str | None, review: Review) -> Written:
    """Order the document into force in place of the one that was seen; whom AWS attests is its author.

    Raises RefusedError, GovernanceError.
    """
    order = DocumentOrder.parse(
        {
            "action": "put-document",
            "clusterArn": cluster.arn,
            "clusterName": cluster.name,
            "text": text,
            "replaces": replaces,
            "reviewed": review.changes,
            "claim": review.claim,
        }
    )
    version = str(give(place, order)["version"])
    # Not the clock of this machine: it is compared with the times of runs.
    return Written(cluster.arn, cluster.name, version, _head(place, POLICY_KEY.format(cluster.name))["LastModified"])


def _head(place: Deployed, key: str) -> HeadObjectOutputTypeDef:
    with translated(f"look at {key}"):
        return boto3.client("s3", config=CONFIG).head_object(Bucket=place.bucket_name, Key=key)


def wait_for_run(place: Deployed, written: Written, seconds: float, say: Callable[[str], None]) -> Ended | None:
    """Return what a run made of this version of the document; None when none had ended after so many seconds."""
    clock = SystemClock()
    began = clock.now()
    while True:
        found = _run_of(place, written)
        is_open = found is None or found.outcome in {NEEDS_APPROVAL, STOPPED}
        asked = _asked(place, written, found) if is_open else None
        passed = (clock.now() - began).total_seconds()
        if asked is not None or not is_open or passed >= seconds:
            return asked or found
        say(f"waiting for the run, {passed:.0f} of {seconds:.0f} s")
        time.sleep(min(LOOK_EVERY, seconds - passed))


def _run_of(place: Deployed, written: Written) -> Ended | None:
    """Return how the runs of this version ended: the first one that had something to do, or else the last.

    One that was stopped counts only as long as no other has ended.
    """
    found: Ended | None = None
    for run in runs(place, written.cluster_arn):  # newest first
        if datetime.fromisoformat(str(run["endedAt"])) < written.at:
            break
        outcome = str(run["outcome"])
        if outcome == UNLOCKED or (outcome == STOPPED and found is not None):
            continue
        plan = _plan(place, run.get("plan"))
        if plan is None and datetime.fromisoformat(str(run["startedAt"])) < written.at:
            continue  # it failed before it had planned, and had begun before
        if plan is not None and plan.policy_version != written.version:
            continue  # it had read the document of before
        if found is None or outcome != "nothing-to-do":
            found = Ended(outcome, run.get("planId"), run.get("error"))
    return found


def _asked(place: Deployed, written: Written, unasked: Ended | None) -> Ended | None:
    """Return the plan that waits for a person: this version's, or the one whose changes had been asked for already.

    The cluster's state names it; the request itself, with its task token, is for approvers alone.
    """
    with translated(f"see what is requested on {written.cluster_name}"):
        key = keys.state(written.cluster_arn)
        state = place.table.get_item(Key=key, ConsistentRead=True).get("Item", {})
    asked = _plan(place, state.get("askedDocument"))
    if asked is None:
        return None
    is_same = unasked is not None and unasked.plan_id == asked.plan_id
    return Ended(NEEDS_APPROVAL, asked.plan_id) if is_same or asked.policy_version == written.version else None


def _plan(place: Deployed, pointer: object) -> Plan | None:
    """Return a stored plan; None where no place is on record, and for a plan that is not kept any more."""
    body = None if pointer is None else place.documents.find(Pointer.model_validate_json(str(pointer)).key)
    return None if body is None else plan_from_json(body)
