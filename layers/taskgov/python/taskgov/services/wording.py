"""Cut sentences to what a state of Step Functions can carry (256 KiB), and lists to what people read."""

from collections.abc import Sequence
from typing import Final

MOST_SENTENCES: Final = 50
MOST_LETTERS: Final = 500
MOST_NAMED: Final = 20


def cut(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the first sentences, each of them not too long, and how many more there are."""
    shown = [text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} ..." for text in sentences]
    more = len(shown) - MOST_SENTENCES
    return (*shown[:MOST_SENTENCES], *([f"and {more} more"] if more > 0 else ()))


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are.

    >>> listed(["alpha", "beta"]), listed(["alpha"] * 22).endswith("alpha and 2 more")
    ('alpha, beta', True)
    """
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
