"""Text that somebody else wrote, made safe to show: on a terminal, in a notice, in a log."""

import unicodedata
from typing import Final

_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode's categories of what is not seen and may act: control characters (ANSI's ESC, C1), marks of direction, halves
of pairs, private and unassigned characters, separators of lines."""


def printable(text: str, *, keep: str = "", limit: int | None = None) -> str:
    r"""Return the text with every character that is not seen written as its escape; `keep` names those that may stay.

    Longer than `limit`, it is cut.

    Example:
        >>> print(printable("a\x1b[31mb"), printable("c\u202ed\n"), printable("long", limit=3))
        a\x1b[31mb c\u202ed\n lo…

    """
    kept = text
    for character in keep:
        kept = kept.replace(character, "")
    if not kept.isprintable():
        # A page has 10,000 characters, and a hundred different ones.
        escaped = {ord(found): _escape(found) for found in set(text) if not (_is_seen(found) or found in keep)}
        text = text.translate(escaped) if escaped else text
    return text if limit is None or len(text) <= limit else f"{text[: limit - 1]}…"


def _is_seen(character: str) -> bool:
    return unicodedata.category(character) not in _INVISIBLE


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
