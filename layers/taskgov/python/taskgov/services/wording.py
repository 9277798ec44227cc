"""Cut sentences to what a state of Step Functions can carry (256 KiB), and lists to what people read."""

import json
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

MOST_SENTENCES: Final = 20
MOST_OF_A_SENTENCE: Final = 350
"""Bytes of a sentence, as JSON in UTF-8: limits of AWS are limits of bytes, and a letter may take six."""
MOST_NAMED: Final = 20
MOST_OF_AN_ERROR: Final = 8000
"""Bytes of an error that ends a run; the state machine keeps as many letters of a cause."""


def cut(sentences: Sequence[str]) -> tuple[str, ...]:
    """Return the first sentences, each of them not too long, and how many more there are."""
    more = len(sentences) - MOST_SENTENCES
    return (*map(shortened, sentences[:MOST_SENTENCES]), *([f"and {more:,} more"] if more > 0 else ()))


def shortened(sentence: str, most: int = MOST_OF_A_SENTENCE) -> str:
    """Return a sentence, or its beginning where it takes more than so many bytes: it may name every team.

    >>> shortened("one, two, three", 8), shortened("\uac00\uac00\uac00", 8)
    ('one, two ...', '\uac00\uac00 ...')
    """
    if len(sentence) <= most and _size(sentence) <= most:
        return sentence
    letters = bisect_right(range(1, most + 1), most, key=lambda number: _size(sentence[:number]))
    return f"{sentence[:letters]} ..."


def shortened_error(error: str | None) -> str | None:
    """Return an error as the record of a run and its event keep it: it may name every quota."""
    return None if error is None else shortened(error, MOST_OF_AN_ERROR)


def _size(text: str) -> int:
    """Return how many bytes a text takes within JSON."""
    return len(json.dumps(text, ensure_ascii=False).encode(errors="surrogatepass")) - len('""')


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are.

    >>> listed(["alpha", "beta"]), listed(["alpha"] * 22).endswith("alpha and 2 more")
    ('alpha, beta', True)
    """
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
