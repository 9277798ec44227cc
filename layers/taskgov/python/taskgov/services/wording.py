"""Cut sentences to what a state of Step Functions can carry (256 KiB), and lists to what people read."""

from collections.abc import Sequence
from typing import Final

MOST_SENTENCES: Final = 20
MOST_LETTERS: Final = 350
MOST_NAMED: Final = 20
MOST_OF_AN_ERROR: Final = 8000
"""Letters of an error that end a run: as many as the state machine keeps of a cause."""


def cut(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the first sentences, each of them not too long, and how many more there are."""
    more = len(sentences) - MOST_SENTENCES
    return (*map(shortened, sentences[:MOST_SENTENCES]), *([f"and {more:,} more"] if more > 0 else ()))


def shortened(sentence: str, letters: int = MOST_LETTERS) -> str:
    """Return a sentence, or its beginning where it is too long: it may name every team.

    >>> shortened("one, two, three", 8)
    'one, two ...'
    """
    return sentence if len(sentence) <= letters else f"{sentence[:letters]} ..."


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are.

    >>> listed(["alpha", "beta"]), listed(["alpha"] * 22).endswith("alpha and 2 more")
    ('alpha, beta', True)
    """
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
