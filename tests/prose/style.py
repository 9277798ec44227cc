"""The project's own style, beside proselint's: plain words, the field's terms, nothing personified.

Each entry is a pattern (RE2, whole words, case ignored) with what to write instead.
"""

from typing import Final

WORDS: Final = {
    "all the same": "anyway",
    "by and by": "later",
    "for ever": "forever",
    "grave|graver|gravest": "severe",
    "hear|hears|heard": "get, receive, be notified of",
    "mend|mends|mended|mending": "fix",
    "no trouble": "harmless",
    "otherwise than": "differently from",
    "round the stack": "bypass the stack",
    "speaks|speaks of": "names, says",
    "tells": "says, shows, sends, reports",
    "of which (?:the|a) [a-z]+ has (?:none|no)": "if there is no ...",
    "in no time at all": "with zero latency",
    "nothing of [A-Z][a-z]+ is asked": "... is not called",
}
"""Private, personified or old words, which the project's first texts had."""

OFF: Final = (
    "typography",
    "spelling.able_atable",  # allocatable is Kubernetes' word
    "dates_times",  # of times in examples
    "lexical_illusions",  # of columns of numbers
    "misc.capitalization",
    "restricted",
    "uncomparables",
    "weasel_words.very",
)
"""Checks of proselint that are about typography, or take the field's words for mistakes."""
