"""What could an audit not check? What the snapshot lacks: without it, a report must not read as if all was fine."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from taskgov.snapshot.model import KueueObjects, Snapshot

QUOTAS: Final = "quotas"
TASKS: Final = "queues and tasks"


@dataclass(frozen=True, slots=True)
class NotChecked:
    """A part of an audit that was left out."""

    part: str
    because: str

    @property
    def words(self) -> str:
        """The part and the reason, for a list."""
        return f"{self.part} ({self.because})"


def not_checked(snapshot: Snapshot) -> Iterator[NotChecked]:
    """Yield what the audit of a snapshot leaves out; nothing where it is whole."""
    if snapshot.policy is None and not snapshot.policy_violations:
        yield NotChecked(QUOTAS, "there is no policy document")
    if snapshot.kueue == KueueObjects():
        yield NotChecked(TASKS, "the snapshot has no objects of Kueue")
