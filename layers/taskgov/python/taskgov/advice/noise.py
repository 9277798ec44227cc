"""How far do numbers move when jobs come a little earlier or later? That far a difference is chance."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from taskgov.advice.past import HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.advice.past import Piece

SHIFT: Final = HOUR
"""Each job comes up to so much earlier or later."""


def jittered(pieces: Sequence[Piece], seed: int, first: float, last: float) -> tuple[Piece, ...]:
    """Return the jobs with arrivals that are shifted a little, within a stretch of time: the same for the same seed."""
    moved = (
        piece._replace(arrival=min(max(piece.arrival + SHIFT * _shift(seed, place), first), last))
        for place, piece in enumerate(pieces)
    )
    return tuple(sorted(moved, key=lambda piece: (piece.arrival, piece)))


def _shift(seed: int, place: int) -> float:
    """Return a number from -1 to 1 that looks like chance."""
    digest = blake2b(f"{seed}/{place}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**63 - 1
