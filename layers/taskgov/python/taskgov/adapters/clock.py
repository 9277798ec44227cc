"""The time of day."""

from datetime import UTC, datetime


class SystemClock:
    """The `Clock` port over the machine's clock."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)
