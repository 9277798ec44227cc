"""An item of the table that cannot be read: newer than this release, or damaged."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class UnreadableItem:
    """One item, by its keys, and why it cannot be read."""

    pk: str
    sk: str
    because: str

    def __str__(self) -> str:
        """Return the sentence that an error says."""
        return f"the item {self.sk} of {self.pk} cannot be read: {self.because}"

    @property
    def quota_id(self) -> str | None:
        """The quota whose record it is, if it is one."""
        return self.sk.removeprefix("QUOTA#") if self.sk.startswith("QUOTA#") else None
