"""What do jobs ask for, in numbers? Amounts by place, and the flavors from which they may come."""

from __future__ import annotations

from typing import NamedTuple

Amounts = tuple[tuple[int, int], ...]
"""Places with amounts."""


class Search(NamedTuple):
    """One walk over the flavors of a resource group, for pod sets that get the same."""

    pods: int
    """Which pod sets: those of one number are served together."""
    options: tuple[Amounts | None, ...]
    """What is requested of each flavor; `None` for one that the pods may not use."""
    resumes: bool = True
    """Whether it continues where it stopped: Kueue keeps the place with the first pod set, if that requests it."""
