"""The time of a stack that is prepared at once and then served to people: first virtual, then real."""

from __future__ import annotations

from datetime import UTC, datetime

from taskgov_embedded.virtual_time.clock import VirtualClock


class LiveClock(VirtualClock):
    """A virtual clock until `go_live`; from then on the process has its own time back, and this clock returns it."""

    @property
    def now(self) -> datetime:
        """The present moment."""
        return datetime.now(UTC) if self.is_live else self._now

    @property
    def millis(self) -> float:
        """The present moment in milliseconds since 1970; queues show a message by it."""
        return self.now.timestamp() * 1000

    @property
    def iso(self) -> str:
        """The present moment as AWS writes it in events."""
        return self.now.strftime("%Y-%m-%dT%H:%M:%SZ")

    def go_live(self) -> None:
        """Let time pass by itself; nothing jumps any more."""
        super().uninstall()
        self.is_live = True

    def uninstall(self) -> None:
        """Give the process its own time back, if it has not got it yet."""
        if not self.is_live:
            super().uninstall()

    def move_to(self, moment: datetime) -> None:
        """Let it be `moment` while the clock is virtual; real time moves by itself."""
        if not self.is_live:
            super().move_to(moment)
