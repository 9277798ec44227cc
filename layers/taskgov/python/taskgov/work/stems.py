"""The stem of a job's name: the common part of its runs, without numbers, dates and random suffixes.

Run times are compared by stem, and the record has no full names. Which suffixes are removed is taskgov's own choice. A
size such as `70b` stays, because jobs of another size take another time.
"""

import re
from typing import Final

_UUID: Final = re.compile(r"[-_.]?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$")
_LAST: Final = re.compile(r"^(?P<rest>.+?)[-_.]+(?P<last>[^-_.]+)$")
_OF_A_RUN: Final = re.compile(
    r"\d+"  # a number, a date
    r"|\d+t\d+z?"  # a time, as 20261101t120000z
    r"|(?:run|job|try|trial|attempt|exp|seed|retry|v|r|n|e|t)\d+"
    r"|[bcdfghjklmnpqrstvwxz2456789]{5}"  # the suffix that Kubernetes adds for `generateName`
    r"|(?=[a-f]*\d)[0-9a-f]{7,}",  # a commit, a digest
)


def stem_of(name: str) -> str:
    """Return the stem of a job's name. At least its first part stays.

    Example:
        >>> [stem_of(name) for name in ("qwen3-sft-20261101-8x2kz", "llama-70b-run12", "eval_007", "42", "train")]
        ['qwen3-sft', 'llama-70b', 'eval', '42', 'train']

    """
    stem = _UUID.sub("", name) or name
    while (found := _LAST.match(stem)) and _OF_A_RUN.fullmatch(found["last"].lower()):
        stem = found["rest"]
    return stem
