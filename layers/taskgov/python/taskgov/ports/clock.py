"""The time of day."""

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time of day."""

    def now(self) -> datetime:
        """Return the present moment, aware, in UTC."""
        ...
