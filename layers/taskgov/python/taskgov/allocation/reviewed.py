"""Judge whether the plan of a document is the one that was reviewed before the document was put into force.

A document may name the digest of the plan that people reviewed in a pull request (`taskgov apply --reviewed`). Until
its promises have been written once, a run writes only that plan without approval; any other plan needs one. Later plans
of the same document follow the cluster, which no review could predict.
"""

from collections.abc import Iterator

from taskgov.allocation.codec import changes_sha256
from taskgov.allocation.guardrails import APPROVAL
from taskgov.allocation.plan import POLICY_KINDS, Change, GuardrailVerdict, Plan
from taskgov.snapshot.model import Snapshot


def reviewed_verdicts(snapshot: Snapshot, plan: Plan) -> Iterator[GuardrailVerdict]:
    """Yield the verdict on a plan that writes promises of a reviewed document for the first time."""
    if not snapshot.policy_reviewed or not any(_is_first(snapshot, change) for change in plan.changes):
        return
    if changes_sha256(plan) == snapshot.policy_reviewed:
        yield GuardrailVerdict(APPROVAL, passed=True, because="These are the changes that were reviewed.")
        return
    yield GuardrailVerdict(
        APPROVAL,
        passed=False,
        because="These are not the changes that were reviewed with the document: the cluster has changed since.",
        remedy="approve the plan, or review a new one",
    )


def _is_first(snapshot: Snapshot, change: Change) -> bool:
    """Whether a change writes what the document says of a quota, or of the policy, and that was not written before."""
    if change.kind in POLICY_KINDS:
        return True
    applied = next((known for known in snapshot.applied if known.compute_quota_id == change.resource_id), None)
    return applied is None or applied.promise != change.promise
