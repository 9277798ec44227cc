"""Cut sentences to what a state of Step Functions can carry (256 KiB)."""

from collections.abc import Sequence
from typing import Final

MOST_SENTENCES: Final = 50
MOST_LETTERS: Final = 500


def cut(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the first sentences, each of them not too long, and how many more there are."""
    shown = [text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} ..." for text in sentences]
    more = len(shown) - MOST_SENTENCES
    return (*shown[:MOST_SENTENCES], *([f"and {more} more"] if more > 0 else ()))
