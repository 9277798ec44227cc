"""Shift arrivals at random, to measure which differences between replays are noise."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Final

from taskgov.advice.past import HOUR

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov.advice.past import Piece

SHIFT: Final = HOUR
"""The most that an arrival is shifted, earlier or later, in seconds."""


def jittered(pieces: Sequence[Piece], seed: int, first: float, last: float) -> tuple[Piece, ...]:
    """Return the jobs with shifted arrivals, kept between `first` and `last`. The same seed gives the same shifts."""
    moved = (
        piece._replace(arrival=min(max(piece.arrival + SHIFT * _shift(seed, place), first), last))
        for place, piece in enumerate(pieces)
    )
    return tuple(sorted(moved, key=lambda piece: (piece.arrival, piece)))


def _shift(seed: int, place: int) -> float:
    """Return a pseudo-random number from -1 to 1."""
    digest = blake2b(f"{seed}/{place}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) / 2**63 - 1
