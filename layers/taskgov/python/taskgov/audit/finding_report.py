"""Complete findings for the report: severity by the document's rules, owner, age and remedy.

`report_build` calls it with everything that was found; the policy document's `audit` section says how each is treated.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields

from taskgov.allocation.plan import Plan
from taskgov.audit.owners import known_teams, owners_of
from taskgov.audit.plan_effect import NotSupposedError, PlanEffect, plan_effects
from taskgov.audit.remedy_commands import About, commands_of, longest_waiting
from taskgov.audit.report import MutedBy, PlanRemedy, ReportedFinding
from taskgov.audit.severity import ended_mutes, mute_of, rated
from taskgov.audit.trend import Earlier, Seen
from taskgov.findings import Finding
from taskgov.findings.of_audit import NOTICE_TOPIC_REFUSED, REMEDIES_UNKNOWN
from taskgov.policy.document import AuditRules, Mute
from taskgov.snapshot.model import Snapshot
from taskgov.usage.tasks import tasks_of


@dataclass(frozen=True, slots=True)
class Reported:
    """All findings of an audit, worst first, then by subject: those that count, and those that are muted."""

    findings: tuple[ReportedFinding, ...]
    muted: tuple[ReportedFinding, ...]


def report_findings(
    snapshot: Snapshot,
    plan: Plan,
    found: Sequence[Finding],
    earlier: Earlier,
    topics: str | None = None,
    beside: Sequence[Finding] = (),
    document: str = "",
) -> Reported:
    """Return what is reported of `found`, of `beside` (what no plan remedies), and of the audit's own rules.

    `topics` is how the ARNs of teams' topics must begin for the stack to reach them; None when it is not known. Rules
    of a document that is not in use mute nothing. `document` is the file that was used instead of the one in force.
    """
    rules = snapshot.policy.audit if snapshot.policy else AuditRules()
    ended = ended_mutes((*found, *beside), rules.mute, snapshot.taken_at)
    own = [*ended, *_unreachable(snapshot, topics), *beside]
    effects: dict[str, PlanEffect] = {}
    try:
        effects = {effect.identity: effect for effect in plan_effects(snapshot, plan, found)}
    except NotSupposedError as error:
        own.append(_unknown_remedies(snapshot, plan, error))
    waiting = longest_waiting(tasks_of(snapshot))
    context = _Context(snapshot, plan, earlier, rules, known_teams(snapshot), effects, waiting, document)
    told = sorted((context.reported(finding) for finding in (*found, *own)), key=_gravity)
    return Reported(
        findings=tuple(finding for finding in told if finding.muted is None),
        muted=tuple(finding for finding in told if finding.muted is not None),
    )


@dataclass(frozen=True, slots=True)
class _Context:
    snapshot: Snapshot
    plan: Plan
    earlier: Earlier
    rules: AuditRules
    teams: frozenset[str]
    effects: Mapping[str, PlanEffect]
    waiting: Mapping[str, str]
    document: str

    def reported(self, finding: Finding) -> ReportedFinding:
        now = self.snapshot.taken_at
        told, seen = rated(finding, self.rules.severities), self.earlier.seen(finding, now)
        owners = owners_of(finding, self.teams)
        remedy = self._remedy(self.effects.get(finding.identity))
        about = About(self.snapshot.cluster.name, finding.subject, owners, self.waiting, self.document)
        return ReportedFinding(
            **{field.name: getattr(told, field.name) for field in fields(Finding)},
            teams=owners,
            first_seen=seen.first_seen,
            audits=seen.audits,
            is_new=seen.is_new,
            rated_from=None if told.severity is finding.severity else finding.severity,
            plan=remedy,
            muted=_muted_by(mute_of(finding, self.rules.mute, now)),
            commands=commands_of(finding, about, remedy),
        )

    def _remedy(self, effect: PlanEffect | None) -> PlanRemedy | None:
        stopped = (verdict.guardrail for verdict in self.plan.guardrails if not verdict.passed)
        return None if effect is None else PlanRemedy(effect.plan_id, effect.changes, tuple(stopped))


def seen_of(finding: ReportedFinding) -> tuple[Finding, Seen]:
    """Return a reported finding as the history keeps it. Raises `ValueError` for one that no audit has dated."""
    if finding.first_seen is None:
        raise ValueError(f"{finding.identity}: first seen at an unknown time")
    return finding, Seen(finding.first_seen, finding.audits, is_new=finding.is_new)


def _unknown_remedies(snapshot: Snapshot, plan: Plan, error: NotSupposedError) -> Finding:
    """Say why no finding names the plan that would remedy it: it is not because the plan remedies nothing."""
    return REMEDIES_UNKNOWN.about(
        snapshot.cluster.name,
        {"error": str(error)},
        changes=len(plan.changes),
        plan_id=plan.plan_id,
        error=error,
    )


def _unreachable(snapshot: Snapshot, topics: str | None) -> Iterable[Finding]:
    """Report topics of teams that the stack may not write to: no notice of theirs would ever arrive."""
    if topics is None or snapshot.policy is None:
        return
    notices = snapshot.policy.notice_rules
    for team in sorted(known_teams(snapshot)):
        for topic in filter(None, (notices.topic_of(team), notices.chat.topic_of(team))):
            if not topic.startswith(topics):
                yield NOTICE_TOPIC_REFUSED.about(team, {"topic": topic}, team=team, topic=topic, prefix=topics)


def _muted_by(mute: Mute | None) -> MutedBy | None:
    return None if mute is None else MutedBy(mute.finding, mute.about, mute.reason, mute.until)


def _gravity(finding: Finding) -> tuple[int, str, str]:
    return -finding.severity.gravity, finding.subject, finding.code
