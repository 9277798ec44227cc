"""Which of two ways to get a flavor is better, and is it good enough? Grades of (mode, borrow level).

Called by `flavor_search`. Rules: `isPreferred` and `shouldTryNextFlavor` in
`pkg/scheduler/flavorassigner/flavorassigner.go` of Kueue.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from taskgov.scheduling.assignment import NO_CANDIDATES, NO_FIT, PREEMPT, RECLAIM, Mode
from taskgov.scheduling.objects import PREEMPTION_OVER_BORROWING, TRY_NEXT_FLAVOR

if TYPE_CHECKING:
    from taskgov.scheduling.objects import Fungibility


def is_preferred(a: tuple[Mode, int], b: tuple[Mode, int], fungibility: Fungibility) -> bool:
    """Return whether (mode, borrow level) `a` is strictly better than `b` (FA: isPreferred)."""
    if a[0] == NO_FIT:
        return False
    if b[0] == NO_FIT:
        return True
    if (a[0] == NO_CANDIDATES) != (b[0] == NO_CANDIDATES):
        return b[0] == NO_CANDIDATES
    if fungibility.preference == PREEMPTION_OVER_BORROWING:
        return a[1] < b[1] or (a[1] == b[1] and a[0] > b[0])
    return a[0] > b[0] or (a[0] == b[0] and a[1] < b[1])


def tries_next(grade: tuple[Mode, int], fungibility: Fungibility) -> bool:
    """Return whether the search continues after a flavor of this grade (FA: shouldTryNextFlavor)."""
    mode, borrow = grade
    if mode in {NO_FIT, NO_CANDIDATES}:
        return True
    if mode in {PREEMPT, RECLAIM} and fungibility.when_can_preempt == TRY_NEXT_FLAVOR:
        return True
    return borrow != 0 and fungibility.when_can_borrow == TRY_NEXT_FLAVOR
