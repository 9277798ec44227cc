"""Tell which code a call to a function reaches: the newest, a published version, or what an alias points to.

`runtime` asks for each invocation; `functions` publishes and `deployments` moves aliases.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

LATEST = "$LATEST"


@dataclass(slots=True)
class Alias:
    """A name for a version, and during a deployment for a second one that gets a part of the calls."""

    version: str
    weights: Mapping[str, float] = field(default_factory=dict)
    calls: int = 0

    def next_version(self) -> str:
        """Return the version that takes the next call: parts are kept exactly, so that a run can be repeated.

        >>> alias = Alias("1", {"2": 0.25})
        >>> [alias.next_version() for _ in range(8)]
        ['1', '1', '1', '2', '1', '1', '1', '2']
        """
        self.calls += 1
        for version, weight in self.weights.items():
            part = Fraction(str(weight))
            if (self.calls * part) // 1 > ((self.calls - 1) * part) // 1:
                return version
        return self.version


def name_of(name_or_arn: str) -> str:
    """Return the name in an ARN, without a version or alias.

    >>> name_of("arn:aws:lambda:us-east-1:111122223333:function:plan:live")
    'plan'
    """
    return name_or_arn.rpartition("function:")[2].split(":")[0]


def qualifier_of(name_or_arn: str) -> str:
    """Return the version or alias at the end of a name or ARN; `$LATEST` when there is none.

    >>> qualifier_of("plan:live"), qualifier_of("arn:aws:lambda:us-east-1:111122223333:function:plan")
    ('live', '$LATEST')
    """
    return name_or_arn.rpartition("function:")[2].partition(":")[2] or LATEST
