"""The time in which a cluster was measured: disjoint spans, in order. Nothing is known of the gaps."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Span:
    """The time from `start` up to, but not including, `end`."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> int:
        """Length in seconds."""
        return int((self.end - self.start) / timedelta(seconds=1))

    def within(self, start: datetime, end: datetime) -> "Span | None":
        """Return the part between two times; None if there is none."""
        first, last = max(self.start, start), min(self.end, end)
        return Span(first, last) if first < last else None


def union(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return the union of spans. Spans that touch are merged.

    Example:
        >>> noon = datetime(2026, 11, 20, 12)
        >>> at = [noon + timedelta(minutes=n) for n in range(5)]
        >>> [span.seconds for span in union([Span(at[3], at[4]), Span(at[0], at[1]), Span(at[1], at[2])])]
        [120, 60]

    """
    joined: list[Span] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if joined and span.start <= joined[-1].end:
            joined[-1] = Span(joined[-1].start, max(joined[-1].end, span.end))
        elif span.start < span.end:
            joined.append(span)
    return tuple(joined)


def clipped(spans: Iterable[Span], start: datetime, end: datetime) -> tuple[Span, ...]:
    """Return the parts of spans between two times."""
    return tuple(part for span in spans if (part := span.within(start, end)))
