"""Find metric data by its dimensions: moto sorts them by a rule that is no order, and misses series of three."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from moto.cloudwatch.models import Dimension

if TYPE_CHECKING:
    from collections.abc import Callable


class MetricData:
    """Orders dimensions by name while the stack is open (a metric has each name once)."""

    def __init__(self) -> None:
        self._own: Callable[..., Any] | None = None

    def install(self) -> None:
        """Put the order in place."""
        self._own = Dimension.__lt__
        Dimension.__lt__ = lambda one, other: one.name < other.name

    def uninstall(self) -> None:
        """Give moto its own back."""
        Dimension.__lt__ = self._own
        self._own = None
