"""Plan a cluster's quotas from a stored snapshot, and store the plan."""

from dataclasses import dataclass
from hashlib import sha256

from taskgov.allocation.authorship import may_approve
from taskgov.allocation.codec import changes_sha256, plan_to_store
from taskgov.allocation.plan import GuardrailVerdict, Outcome, Plan
from taskgov.allocation.planner import plan_quotas
from taskgov.contracts.steps import PlanQuotasRequest, PlanQuotasResult, Pointer
from taskgov.errors import InvalidRequestError
from taskgov.ports import DocumentStore
from taskgov.printable import printable
from taskgov.services.plan_path import paths, wave_ends
from taskgov.services.told_plan import stopped_by
from taskgov.services.wording import shortened
from taskgov.snapshot.codec import snapshot_from_json

WRITES = frozenset({Outcome.APPLY, Outcome.NEEDS_APPROVAL})
"""What leads to writes."""
LEFT = "! This run began before an upgrade, on an older state machine; the next run requests approval and writes."
"""An execution keeps its definition: one from before waves ends here, and the next run has today's."""
KEY = "plans/{cluster}/{plan}/{digest}.json"
"""Plans of one id change the same; they are made on different snapshots and are kept each by itself."""


@dataclass(frozen=True, slots=True)
class PlanQuotas:
    """Makes and stores the plan of a run. Its fields are the ports it uses."""

    documents: DocumentStore

    def __call__(self, request: PlanQuotasRequest) -> PlanQuotasResult:
        """Return the outcome and where the plan is. The same snapshot gives the same plan, byte for byte."""
        body = self.documents.get(request.snapshot)
        try:
            snapshot = snapshot_from_json(body)
        except ValueError as error:  # without pydantic's sentence, which quotes the snapshot
            raise InvalidRequestError(f"{request.snapshot.key} is not a snapshot that this version can read") from error
        counts = not request.needs_approver or may_approve(request.approved_by, snapshot.authorship)
        plan = plan_quotas(
            snapshot,
            mode=request.apply_mode,
            approved_changes=request.approved_changes if counts else None,
            needs_approver=bool(request.needs_approver),
            digest=request.snapshot.sha256,
        )
        left = request.needs_approver is None and plan.outcome in WRITES
        return PlanQuotasResult(
            outcome=Outcome.BLOCKED if left else plan.outcome,
            plan_id=plan.plan_id,
            plan=keep_plan(self.documents, plan),
            change_count=len(plan.changes),
            wave_count=len(wave_ends(plan.changes)),
            changes_sha256=changes_sha256(plan),
            summary=f"{summary(plan)}\n{LEFT}" if left else summary(plan),
            recheck_at=snapshot.taken_at if left else plan.recheck_at,
        )


def keep_plan(documents: DocumentStore, plan: Plan) -> Pointer:
    """Store a plan where no other plan is stored."""
    body = plan_to_store(plan)
    key = KEY.format(cluster=plan.cluster_name, plan=plan.plan_id, digest=sha256(body).hexdigest()[:16])
    return documents.put(key, body, "application/json")


def summary(plan: Plan) -> str:
    """Return the plan in a few lines, as a notice shows it: one for each quota, however often it is written.

    It does not grow with the cluster beyond that: lines are cut, and what is left out is counted. A line quotes what
    others wrote, such as the reason of a lease: no character of it begins another line, or hides one.
    """
    lines = [f"Plan {plan.plan_id} for cluster {plan.cluster_name}: {plan.outcome.value}"]
    changed = [path.last for path in paths(plan.changes)]
    lines += [shortened(f"- {change.team or change.name}: {change.because}") for change in changed[:SUMMARY_CHANGES]]
    if len(changed) > SUMMARY_CHANGES:
        lines.append(f"- and {len(changed) - SUMMARY_CHANGES:,} more changes")
    lines += [f"! {verdict.guardrail}: {verdict.because}{_way_out(verdict)}" for verdict in stopped_by(plan)]
    if plan.outcome in {Outcome.BLOCKED, Outcome.NO_PROGRESS}:
        lines += [shortened(f"! {finding.subject}: {finding.because}") for finding in plan.findings[:SUMMARY_CHANGES]]
        if len(plan.findings) > SUMMARY_CHANGES:
            lines.append(f"! and {len(plan.findings) - SUMMARY_CHANGES:,} more findings")
    return "\n".join(map(printable, lines))


SUMMARY_CHANGES = 20
"""So that a summary stays far below the 256 KiB that a state may hand on."""


def _way_out(verdict: GuardrailVerdict) -> str:
    return f" To continue: {verdict.remedy}." if verdict.remedy else ""
