"""The project's own style, in addition to proselint's: plain words, the field's terms, nothing personified.

Each entry is a pattern (RE2 and Python's `re`, whole words, case ignored) with what to write instead. It holds for
Markdown, docstrings, comments and messages.
"""

from typing import Final

WORDS: Final = {
    "all the same": "anyway",
    "anew": "again",
    "(?:a|another|each|earlier|every|first|last|next|previous) looks?": "snapshot, measurement, read, attempt",
    "(?:is|are|was|were) asked": "... is called, queried, needed",
    "(?:is|are|was|were) to be": "will be, should be",
    "asks for": "requests, needs",
    "believe|believes|believed": "take, use, accept",
    "(?:came|comes?|becomes?|become) of": "result, outcome, effect",
    "by and by": "later",
    "dies": "stops, ends",
    "for ever": "forever",
    "goes on": "continues",
    "grave|graver|gravest": "severe",
    "hear|hears|heard": "get, receive, be notified of",
    "in no time at all": "with zero latency",
    "knows|knew": "has, lists, records, supports",
    "lets? go": "release, drop",
    "(?:in )?the midst": "during, within",
    "mend|mends|mended|mending": "fix",
    "no trouble": "harmless",
    "nobody knows|nobody can tell": "... is unknown",
    "nothing of [A-Z][a-z]+ is asked": "... is not called",
    "of whatever": "of any",
    "of his own accord|of its own accord": "by itself",
    "of which (?:the|a) [a-z]+ has (?:none|no)": "if there is no ...",
    "otherwise than": "differently from",
    "remembers|remembered": "keeps, records",
    "round the stack": "bypass the stack",
    "speak|speaks|speaks of": "name, use, describe",
    "tell|tells|told|telling": "say, show, report, notify, distinguish",
    "thereof|whereof|wherefore|whereupon": "of it, why, then",
    "wants? to be": "should be",
}
"""Private, personified or old words, which the first texts of the project had."""

_COMPARED: Final = "better|earlier|fewer|later|less|longer|more|nearer"
PHRASES: Final = {
    rf"(?<!there)(?<!\s)\s+(?:is|are|was|were)\s+no\s+(?!(?:{_COMPARED})\b)[a-z]": "is not a ...",
    r",\s+of\s+which": "whose, that, without; or a sentence of its own",
}
"""Constructions to avoid, as patterns of Python's `re` (not RE2), but for "there is no ..." and "no longer"."""

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
