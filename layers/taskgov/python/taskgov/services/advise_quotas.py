"""Advise on quotas once a week, from the record of work: reports show it for a week, or until the document changes.

It begins with a note that it began: an audit that ends on the way, and comes again, does not begin once more. An audit
has a few minutes, so advice has a part of them; a cluster with too much work for that gets it from `taskgov advise`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from statistics import fmean
from typing import Final

from taskgov.advice.advising import Advice, Adviser
from taskgov.advice.candidates import Terms
from taskgov.advice.judging import Result
from taskgov.advice.past import HOUR, Past, Piece
from taskgov.advice.playing import Player
from taskgov.advice.proving import Proof, gain_of
from taskgov.advice.recorded import pieces_of
from taskgov.advice.today import Today, gpu_types, today_of
from taskgov.advice.words import candidate_words
from taskgov.audit.quota_advice import AdviceProof, QuotaAdvice, TeamAdvice
from taskgov.errors import GovernanceError
from taskgov.json_form import KeptForm
from taskgov.policy.document import PolicyDocument
from taskgov.ports import DocumentStore
from taskgov.ports.work import WorkDone
from taskgov.services.failures import Failures
from taskgov.services.work_record import RecordedWork
from taskgov.snapshot.model import Snapshot

KEY: Final = "memory/{}/advice.json"
EACH: Final = timedelta(days=6, hours=12)
"""A week, less what one audit comes sooner than the other."""
WEEKS: Final = 8
"""How many weeks of the record are used."""
SPLITS: Final = 4
SECONDS: Final = 80.0
"""For the instance types of a cluster together: a third of the function's time limit."""
MOST_JOBS: Final = 50_000
"""In two weeks: a single replay of more takes too long to be stopped in time."""
BATCH: Final = 300
NO_TIME: Final = "the record has too much work for the time of an audit; taskgov advise has no such limit"
UNFINISHED: Final = "the audit ended before the result; taskgov advise gives it at any time"


@dataclass(frozen=True, slots=True)
class KeptAdvice:
    """What is kept of a cluster: when its advice was begun last, on which document, and its result."""

    begun_at: datetime
    policy_version: str | None
    advice: tuple[QuotaAdvice, ...]


class _OutOfTimeError(Exception):
    """The time of an audit is over."""


@dataclass(frozen=True, slots=True)
class AdviseQuotas:
    """Advises on the quotas of a cluster. Its fields are the ports it uses, and a clock that counts seconds."""

    documents: DocumentStore
    failures: Failures
    seconds: Callable[[], float]

    def __call__(self, snapshot: Snapshot) -> tuple[QuotaAdvice, ...]:
        """Return the advice of this week, which is found out first where its time has come.

        What fails is reported: the audit continues without advice.
        """
        if snapshot.policy is None:
            return ()
        try:
            kept = kept_advice(self.documents, snapshot)
            if kept is not None and snapshot.taken_at - kept.begun_at < EACH:
                return kept.advice
            return self._found(snapshot, snapshot.policy)
        except (GovernanceError, ValueError) as error:
            self.failures.report(snapshot.cluster.name, "advise on quotas", error)
            return ()

    def _found(self, snapshot: Snapshot, policy: PolicyDocument) -> tuple[QuotaAdvice, ...]:
        name, now = snapshot.cluster.name, snapshot.taken_at
        sizes = gpu_types(policy)
        begun = tuple(QuotaAdvice(kind, now, "", UNFINISHED, 0, 0.0) for kind in sizes)
        self._keep(name, KeptAdvice(now, snapshot.policy_version, begun))
        until = self.seconds() + SECONDS
        done = RecordedWork(self.documents).between(name, now - timedelta(weeks=WEEKS), now)
        found = []
        for kind, size in sizes.items():
            today = today_of(policy, kind, size, snapshot.quotas, snapshot.instance_types)
            if today.total:
                found.append(_advice(done, kind, today, self._player(until)))
        kept = KeptAdvice(now, snapshot.policy_version, tuple(found))
        self._keep(name, kept)
        return kept.advice

    def _player(self, until: float) -> Callable[[Terms, Sequence[Piece]], Result]:
        """Return what replays work until the time is over."""
        player = Player(BATCH)

        def play(terms: Terms, pieces: Sequence[Piece]) -> Result:
            if self.seconds() > until or len(pieces) > MOST_JOBS:
                raise _OutOfTimeError
            return player(terms, pieces)

        return play

    def _keep(self, cluster_name: str, kept: KeptAdvice) -> None:
        self.documents.put(KEY.format(cluster_name), _form().kept(kept), "application/json")


def kept_advice(documents: DocumentStore, snapshot: Snapshot) -> KeptAdvice | None:
    """Return the last advice on the document in force; None where there is none, or it cannot be read."""
    stored = documents.find(KEY.format(snapshot.cluster.name))
    try:
        kept = None if stored is None else _form().read(stored)
    except ValueError:
        return None
    return kept if kept is not None and kept.policy_version == snapshot.policy_version else None


def _advice(
    done: WorkDone, instance_type: str, today: Today, play: Callable[[Terms, Sequence[Piece]], Result]
) -> QuotaAdvice:
    teams = {team.team for team in today.teams}
    pieces = [
        piece
        for piece in pieces_of(done.ended, instance_type)
        if piece.team in teams and piece.gpus and piece.run_time and piece.arrival >= done.start.timestamp()
    ]
    end = done.end.timestamp()
    begun = min((piece.arrival for piece in pieces), default=end)
    past = Past.of((piece._replace(arrival=piece.arrival - begun) for piece in pieces), end - begun)
    length = (done.end - done.start).total_seconds()
    unmeasured = (length - sum(span.seconds for span in done.measured)) / HOUR
    adviser = Adviser(past, lambda _: today, play)
    try:
        advice = adviser.advise(most=SPLITS)
    except _OutOfTimeError:
        return QuotaAdvice(instance_type, done.end, "", NO_TIME, len(pieces), unmeasured)
    advised = "" if advice.candidate is None else candidate_words(advice.candidate, fair=today.fair)
    return QuotaAdvice(
        instance_type=instance_type,
        made_at=done.end,
        advised=advised,
        because=advice.because,
        jobs=len(pieces),
        unmeasured_hours=unmeasured,
        proof=_proof(advice) if advice.proofs else None,
        teams=tuple(_teams(advice)),
    )


def _proof(advice: Advice) -> AdviceProof:
    proofs = advice.proofs
    today, advised = [proof.today for proof in proofs], [proof.advised for proof in proofs]
    return AdviceProof(
        splits=len(proofs),
        won=sum(proof.won for proof in proofs),
        gain_percent=100 * gain_of(proofs),
        noise_percent=100 * advice.noise,
        mean_wait=fmean(result.mean_wait for result in today),
        advised_mean_wait=fmean(result.mean_wait for result in advised),
        p95_wait=fmean(result.p95_wait for result in today),
        advised_p95_wait=fmean(result.p95_wait for result in advised),
        lost_percent=_lost(today),
        advised_lost_percent=_lost(advised),
        worse_than_today=_worse(proofs, lambda proof: proof.today),
        worse_than_alone=_worse(proofs, lambda proof: proof.alone),
    )


def _lost(results: Sequence[Result]) -> float:
    work = sum(result.work_gpu_hours for result in results)
    return 100 * sum(result.lost_gpu_hours for result in results) / work if work else 0.0


def _worse(proofs: Sequence[Proof], than: Callable[[Proof], Result]) -> tuple[str, ...]:
    return tuple(sorted({team for proof in proofs for team in proof.advised.worse_than(than(proof))}))


def _teams(advice: Advice) -> list[TeamAdvice]:
    now = dict(advice.today.teams)
    return [
        TeamAdvice(team, now[team].quota, own.quota, now[team].limit, own.limit)
        for team, own in advice.terms.teams
        if (own.quota, own.limit) != (now[team].quota, now[team].limit)
    ]


@cache
def _form() -> KeptForm[KeptAdvice]:
    return KeptForm(KeptAdvice)
