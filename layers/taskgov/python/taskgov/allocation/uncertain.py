"""Find the uncertain parts of a prediction: the cluster uses features that the scheduling model does not cover.

| case | result |
| --- | --- |
| an effect on a workload whose competition uses such a feature | names the feature (`taskgov.scheduling.doubts`) |
| another running workload that may be preempted (`taskgov.scheduling.threats`) | an effect, `may be preempted` |

Workloads that the same competitors might preempt without the plan, under the same policy, are left out: the plan is not
the cause.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Final

from taskgov.scheduling.threats import Threat

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from taskgov.allocation.plan import Change
    from taskgov.allocation.projection import Projection
    from taskgov.scheduling import Budget, KueueModel, NotModelled
    from taskgov.scheduling.doubts import Doubts

MOST_NAMED: Final = 3
"""Names that a sentence has."""


def waiting_in(model: KueueModel) -> frozenset[str]:
    """Return the workloads that hold no quota."""
    return frozenset(key for key in model.workloads() if model.admission(key) is None)


def may_be_preempted(
    known: Sequence[KueueModel],
    start: Projection,
    waves: Iterable[Sequence[Change]],
    safe: Collection[str],
    budget: Budget,
) -> Doubts:
    """Return who runs, and may be preempted because of writes, with the features that make it uncertain.

    `known` is the cluster that is left alone, as it is and as it comes to rest. The waves are played on a copy of
    `start`, within the budget: who is threatened is computed when a wave is written, and when it has settled. `safe`
    are workloads that are not asked about.
    """
    if not any(model.doubts for model in (*known, start.model)):
        return {}
    waits = waiting_in(known[0])
    before = frozenset[Threat]().union(*(_threats(model, waits, model.doubts) for model in known))
    found: dict[str, tuple[str, ...]] = {}

    def ask(model: KueueModel) -> None:
        doubts = model.doubts
        reached = model.threatened(_threats(model, waits, doubts) - before)
        found.update({key: doubts[key] for key in reached - {*waits, *safe, *found} if key in doubts})

    played = start.copy()
    ask(played.model)
    for wave in waves:
        played.write(wave)
        ask(played.model)
        played.settle(budget)
        ask(played.model)
    return found


def _threats(model: KueueModel, waits: Collection[str], doubts: Doubts) -> frozenset[Threat]:
    return model.threats({*waits, *waiting_in(model)}, doubts)


def not_followed(gaps: Iterable[NotModelled]) -> tuple[str, ...]:
    """Return what is used and not followed, a sentence for each feature and kind.

    Example:
        >>> from taskgov.scheduling import NotModelled
        >>> not_followed(NotModelled("MultiKueue", "Workload", name) for name in "abcde")
        ('MultiKueue (Workload a, b, c and 2 more)',)

    """
    sentences = []
    for (feature, kind), some in groupby(gaps, lambda gap: (gap.feature, gap.kind)):
        names = [gap.name for gap in some]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        sentences.append(f"{feature} ({kind} {', '.join(names[:MOST_NAMED])}{more})")
    return tuple(sentences)
