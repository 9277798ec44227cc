"""Guard plans after a restored state, and against another stack on the cluster.

Nothing is lowered because of a loss alone. A quota whose record was lost may hold an edit, a lease or a move by demand
that left no trace. Raising such a quota continues; lowering it requires approval. A restored bucket may have an older
document. Every change then requires approval, until a document is put into force again.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from taskgov.allocation.goals import Goal
from taskgov.allocation.plan import Change, GuardrailVerdict
from taskgov.findings import Finding
from taskgov.findings.of_state import (
    OTHER_STACK,
    OTHER_STACK_YOUNGER,
    STATE_RESTORED,
    UNREADABLE_ITEM,
    UNREADABLE_OBJECT,
)
from taskgov.snapshot.identity import SHOWN_FOR, Loss, RestoredState, said_claim
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.unreadable import (
    CLUSTER_NODE,
    COMPUTE_QUOTA,
    INSTANCE_GROUP,
    PROMISES,
    SCHEDULER_CONFIG,
    UnreadableObject,
)

RESTORED: Final = STATE_RESTORED.code
"""The guardrail that a person passes by approving; the finding has the same name."""
_ONLY_PLANS: Final = True
_NAMED: Final = 10
_STANDS: Final = "No quota and no cluster policy is written until it can be read."
_LEFT_OUT: Final = "Its effect on work is not predicted."
_EFFECTS: Final = {
    "Node": "The machine counts as in the previous snapshot.",
    CLUSTER_NODE: "The machine counts as Kubernetes reports it, or as in the previous snapshot.",
    COMPUTE_QUOTA: f"What it guarantees is not known. {_STANDS}",
    INSTANCE_GROUP: f"The resources of its machines are not known. {_STANDS}",
    SCHEDULER_CONFIG: f"The content of the cluster policy is not known. {_STANDS}",
    "ResourceFlavor": _LEFT_OUT,
    "Cohort": _LEFT_OUT,
    "ClusterQueue": "The quota of its team stays as it is.",
    "LocalQueue": _LEFT_OUT,
    "WorkloadPriorityClass": _LEFT_OUT,
    "Workload": _LEFT_OUT,
    "LimitRange": _LEFT_OUT,
    "RuntimeClass": _LEFT_OUT,
}
"""The effect of leaving out an object of each kind."""
_LOST: Final = {
    Loss.TABLE_BEHIND: "The table is an older copy",
    Loss.TABLE_EMPTY: "The table's records are gone",
    Loss.TABLE_FOREIGN: "The table is another stack's",
    Loss.BUCKET_BEHIND: "The bucket is an older copy",
    Loss.BUCKET_EMPTY: "The bucket's memory is gone",
    Loss.BOTH_BEHIND: "Table and bucket are older copies",
    Loss.NEW_STACK: "The stack is new on a cluster that was governed before",
}


def still_restored(restored: RestoredState | None, snapshot: Snapshot) -> RestoredState | None:
    """Return the loss if it still matters: doubt about the document, a record that was taken over, or a day."""
    if restored is None:
        return None
    is_doubtful = restored.loss.is_of_documents and snapshot.policy_version == restored.policy_version
    standing = {quota.compute_quota_id for quota in snapshot.quotas}
    is_unknown = any(record.taken_over and record.compute_quota_id in standing for record in snapshot.applied)
    return restored if is_doubtful or is_unknown or snapshot.taken_at - restored.at < SHOWN_FOR else None


def state_verdicts(
    snapshot: Snapshot, changes: Iterable[Change], goals: Iterable[Goal], is_lowered: Callable[[Goal], bool]
) -> Iterable[GuardrailVerdict]:
    """Require approval if a restored state may cause a change."""
    restored = None if snapshot.state is None else snapshot.state.restored
    if restored is None:
        return
    if restored.loss.is_of_documents and snapshot.policy_version == restored.policy_version:
        count = sum(1 for _ in changes)
        because = f"{_LOST[restored.loss]}: the policy document may be of an older version. {count} writes wait."
        remedy = "put the document into force again (taskgov apply --policy), or approve the plan"
        yield GuardrailVerdict(RESTORED, passed=False, because=because, remedy=remedy)
        return
    unknown = (goal for goal in goals if goal.applied is not None and goal.applied.taken_over)
    lowered = sorted({goal.team for goal in unknown if is_lowered(goal)})
    if lowered:
        because = f"{_LOST[restored.loss]}: why {_listed(lowered)} stand as they do is not known, and they would fall."
        yield GuardrailVerdict(RESTORED, passed=False, because=because, remedy="approve the plan")


def state_findings(snapshot: Snapshot) -> Iterable[Finding]:
    """Report a restored state, items that cannot be read, and another stack on the cluster."""
    state = snapshot.state
    if state is not None and state.restored is not None:
        yield _restored(state.restored)
    for item in snapshot.unreadable:
        yield UNREADABLE_ITEM.about(item.sk, {"pk": item.pk}, item=item)
    yield from unreadable_findings(snapshot.unreadable_objects)
    others = [claim for claim in snapshot.claims if state is None or claim.lineage != state.lineage]
    if state is None or not others:
        return
    if snapshot.claims[0].lineage == state.lineage:
        evidence = {"lineage": others[0].lineage, "since": others[0].since.isoformat()}
        yield OTHER_STACK_YOUNGER.about("cluster", evidence, claim=said_claim(others[0]))
        return
    elder = snapshot.claims[0]
    evidence = {"lineage": elder.lineage, "since": elder.since.isoformat()}
    yield OTHER_STACK.about("cluster", evidence, claim=said_claim(elder), own=state.lineage)


def unreadable_findings(objects: Iterable[UnreadableObject]) -> Iterable[Finding]:
    """Report objects of Kubernetes and SageMaker that cannot be read and are left out, kind by kind."""
    by_kind: dict[str, list[UnreadableObject]] = {}
    for item in objects:
        by_kind.setdefault(item.kind, []).append(item)
    for kind, some in sorted(by_kind.items()):
        more = f"; and {len(some) - _NAMED} more" if len(some) > _NAMED else ""
        named = f"{'; '.join(map(str, some[:_NAMED]))}{more}"
        yield UNREADABLE_OBJECT.about(
            kind, {"count": len(some)}, case=kind in PROMISES, objects=named, effect=_EFFECTS[kind]
        )


def as_onlooker(finding: Finding) -> Finding:
    """Return the finding as a stack that only plans reports it: the governing stack, not an incident."""
    if not OTHER_STACK.is_of(finding):
        return finding
    return replace(finding, severity=OTHER_STACK.severity_in(_ONLY_PLANS))


def _restored(restored: RestoredState) -> Finding:
    left = ""
    if restored.taken_over:
        named = _listed(restored.taken_over, restored.more_taken_over)
        left = f" No record was left of {named}; present values were taken over."
    elif restored.loss.is_of_records:
        left = " All records were recovered from the last snapshot."
    count = len(restored.taken_over) + restored.more_taken_over
    evidence = {"loss": restored.loss.value, "at": restored.at.isoformat(), "takenOver": count}
    return STATE_RESTORED.about(
        "state",
        evidence,
        case=restored.loss is Loss.NEW_STACK,
        loss=_LOST[restored.loss],
        because=restored.because,
        left=left,
    )


def _listed(names: Sequence[str], others: int = 0) -> str:
    more = len(names[_NAMED:]) + others
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more else "")
