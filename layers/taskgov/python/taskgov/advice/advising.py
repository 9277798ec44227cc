"""Advise what to change, with a measure of confidence. Candidates are chosen on past weeks and evaluated on later ones.

A choice at a moment uses only what was known before that moment. Each candidate's quotas are computed from one week and
replayed on the next, because a replay on the same week would overestimate the candidate. The proof repeats the choice
at earlier moments and replays it on the weeks that followed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from statistics import stdev
from typing import TYPE_CHECKING

from taskgov.advice.candidates import Candidate, Terms, alone, other_limits, terms_of
from taskgov.advice.choosing import ALIKE_RULES, Tried, best_of
from taskgov.advice.noise import jittered
from taskgov.advice.past import Use, uses
from taskgov.advice.proving import BLUR, Proof, because, gain_of, why_leave
from taskgov.advice.rules import Rule
from taskgov.advice.splits import Split, splits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from taskgov.advice.judging import Result
    from taskgov.advice.past import Past, Piece
    from taskgov.advice.today import Today

    Basis = Callable[[Mapping[str, Use]], Today]
    """Returns the present quotas and limits, given what teams used. With a policy document, use makes no difference."""
    Play = Callable[[Terms, Sequence[Piece]], Result]
    """Replays jobs under the terms of a candidate."""


@dataclass(frozen=True, slots=True)
class Advice:
    """The advised change (`candidate`; None for no change), the reason and the proof."""

    candidate: Candidate | None
    because: str
    terms: Terms
    """The terms of all teams with the advice; today's terms if nothing changes."""
    today: Terms
    tried: tuple[Tried, ...]
    proofs: tuple[Proof, ...]
    noise: float
    """Noise of the gain: two standard errors over the splits, or the shift by jittered arrivals if that is larger."""

    @property
    def gain(self) -> float:
        """The fraction by which the mean wait over all splits is shorter."""
        return gain_of(self.proofs)


class Adviser:
    """Gives advice on one history. Replays are cached, because choices at other moments reuse them."""

    def __init__(
        self,
        past: Past,
        basis: Basis,
        play: Play,
        *,
        looks_back: int = 26,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._past = past
        self._basis = basis
        self._play = play
        self._looks_back = looks_back
        self._tell = tell
        self._priorities = len({piece.priority for piece in past.pieces}) > 1
        self._work: dict[tuple[float, float, bool], tuple[Piece, ...]] = {}
        self._use: dict[tuple[float, float], dict[str, Use]] = {}
        self._results: dict[tuple[Terms, float, float, bool], Result] = {}
        self._terms: dict[tuple[Candidate, Split, bool], Terms] = {}
        today = basis({})
        self._as_it_is = Candidate(today.rule, None, today.fair)

    # Replays

    def _used(self, first: float, last: float) -> dict[str, Use]:
        if (first, last) not in self._use:
            self._use[first, last] = uses(self._pieces(first, last, seen=True), first, last)
        return self._use[first, last]

    def _pieces(self, first: float, last: float, *, seen: bool) -> tuple[Piece, ...]:
        key = (first, last, seen)
        if key not in self._work:
            self._work[key] = (self._past.seen if seen else self._past.between)(first, last)
        return self._work[key]

    def _result(self, terms: Terms, first: float, last: float, *, seen: bool) -> Result:
        key = (terms, first, last, seen)
        if key not in self._results:
            self._results[key] = self._play(terms, self._pieces(first, last, seen=seen))
        return self._results[key]

    def result(self, candidate: Candidate, split: Split, *, seen: bool = False, by_itself: bool = False) -> Result:
        """Return the result of a candidate on the later part of a split, with quotas computed from the earlier part.

        With `seen`, run times are cut at the end of the split. With `by_itself`, teams neither lend nor borrow.
        """
        key = candidate, split, by_itself
        terms = self._terms.get(key)
        if terms is None:
            use = self._used(split.first, split.middle)
            terms = terms_of(candidate, use, self._basis(use))
            terms = self._terms[key] = alone(terms) if by_itself else terms
        return self._result(terms, split.middle, split.last, seen=seen)

    def as_it_is(self) -> Candidate:
        """Return the candidate that changes nothing."""
        return self._as_it_is

    # Choosing

    def choose(self, moment: float) -> tuple[Candidate, tuple[Tried, ...]]:
        """Return the best candidate on the weeks before a moment, and all candidates in the order they were tried.

        Each quota rule is tried with each limit. Preemption settings are then tried with the best of them.
        """
        found = splits(self._past, 1, self._looks_back, until=moment)
        best = now = self.as_it_is()
        if not found:
            return best, ()
        weeks = sorted(found, key=lambda week: -self.result(now, week, seen=True).mean_wait)
        tried = {now: self._try(now, weeks, inf)}

        def is_near(candidate: Candidate) -> bool:
            """Try a candidate. Return whether its wait is close to the lowest."""
            bound = ALIKE_RULES * tried[best_of(tried.values(), now)].relative_wait
            if candidate not in tried:
                self._tell(f"trying {candidate.rule}, limit {candidate.limit}")
                tried[candidate] = self._try(candidate, weeks, bound)
            return tried[candidate].relative_wait <= bound

        for rule in self._rules(now.rule):
            for limit in self._limits():
                if not is_near(replace(now, rule=rule, limit=limit)):
                    break  # a lower limit only makes waits longer
        best = best_of(tried.values(), now)
        for candidate in self._preemption(best):
            is_near(candidate)
        return best_of(tried.values(), now), tuple(tried.values())

    def _rules(self, own: Rule) -> Iterable[Rule]:
        """Return the rules to try, today's first."""
        others = (rule for rule in Rule if rule is not own and not (rule is Rule.TODAY and own is Rule.USE))
        return (own, *others)

    def _limits(self) -> Iterable[int | None]:
        """Return the limits to try, highest first. None (today's limits) ranks as the highest limit of a team."""
        today = self._basis({})
        own = max((team.limit for team in today.teams if team.borrows), default=0)
        return sorted((None, *other_limits(today)), key=lambda limit: -(own if limit is None else limit))

    def _preemption(self, best: Candidate) -> Iterable[Candidate]:
        yield replace(best, fair=not best.fair)
        if self._priorities:
            yield from (replace(best, never=never) for never in (False, True))

    def _try(self, candidate: Candidate, weeks: Sequence[Split], bound: float) -> Tried:
        """Replay a candidate on weeks, in this order. Stop when it exceeds `bound` or is no longer allowed.

        The relative wait is a ratio of sums, not a mean of ratios: the weeks' mean waits are added up first.
        """
        todays = [self.result(self.as_it_is(), week, seen=True) for week in weeks]
        least = sum(today.mean_wait + BLUR for today in todays)
        work = sum(today.work_gpu_hours for today in todays) or 1.0
        teams = sum(len(today.teams) for today in todays)
        found = Tried(candidate, 0.0, 0.0, 0, teams)
        waits: list[float] = []
        for number, week in enumerate(weeks, 1):
            own = self.result(candidate, week, seen=True)
            alone_ = self.result(self.as_it_is(), week, seen=True, by_itself=True)
            waits.append(own.mean_wait + BLUR)
            found = Tried(
                candidate,
                sum(waits) / least,  # summed as today's are: equal waits are exactly 1
                found.lost + own.lost_gpu_hours / work,
                found.worse + len(own.worse_than(alone_)),
                teams,
                found.loops or own.loops,
                is_whole=number == len(weeks),
            )
            if candidate != self.as_it_is() and (found.relative_wait > bound or not found.is_allowed):
                break
        return found

    # Proving

    def prove(self, weeks: int = 2, most: int = 10) -> tuple[Proof, ...]:
        """Return the results of choices at earlier moments, each on the weeks that followed it."""
        proofs = []
        for split in splits(self._past, weeks, most):
            candidate, _ = self.choose(split.middle)
            self._tell("proving on later weeks")
            proofs.append(self.proof(candidate, split))
        return tuple(proofs)

    def proof(self, candidate: Candidate, split: Split) -> Proof:
        """Return the results of a candidate on the later part of a split, compared with today's rules."""
        now = self.as_it_is()
        results = self.result(now, split), self.result(candidate, split), self.result(now, split, by_itself=True)
        return Proof(split, candidate, *results)

    def inputs_of(self, proof: Proof) -> tuple[Terms, Terms, tuple[Piece, ...]]:
        """Return today's terms, the advised terms and the jobs of a proof, so that another model can replay them."""
        split = proof.split
        use = self._used(split.first, split.middle)
        today = self._basis(use)
        before, after = (terms_of(own, use, today) for own in (self.as_it_is(), proof.candidate))
        return before, after, self._pieces(split.middle, split.last, seen=False)

    def noise(self, proofs: Sequence[Proof], seeds: Sequence[int] = (1, 2)) -> float:
        """Return the noise of the gain: two standard errors of the splits, or the shift by jitter if that is larger."""
        gains = [proof.gain for proof in proofs]
        spread = 2 * stdev(gains) / len(gains) ** 0.5 if len(gains) > 1 else 1.0
        moved = [abs(gain_of([self._with_jitter(proof, seed) for proof in proofs]) - gain_of(proofs)) for seed in seeds]
        return max(spread, *moved, 0.0)

    def _with_jitter(self, proof: Proof, seed: int) -> Proof:
        before, after, work = self.inputs_of(proof)
        pieces = jittered(work, seed, proof.split.middle, proof.split.last)
        return replace(proof, today=self._play(before, pieces), advised=self._play(after, pieces))

    def advise(self, weeks: int = 2, most: int = 10) -> Advice:
        """Return the advised change after the end of the history, or no change, with the proof."""
        proofs = self.prove(weeks, most)
        best, tried = self.choose(self._past.end)
        use = self._used(self._past.end - weeks * 7 * 86400.0, self._past.end)
        today = self._basis(use)
        now = terms_of(self.as_it_is(), use, today)
        noise = self.noise(proofs) if proofs and best != self.as_it_is() else 0.0
        why_not = why_leave(best, self.as_it_is(), proofs, noise, weeks)
        if why_not:
            return Advice(None, why_not, now, now, tried, proofs, noise)
        return Advice(best, because(proofs, noise), terms_of(best, use, today), now, tried, proofs, noise)
