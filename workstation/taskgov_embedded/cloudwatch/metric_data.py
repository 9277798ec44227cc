"""Find metric data by its dimensions: moto sorts them by a rule that is no order, and misses series of three."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moto.cloudwatch.models import Dimension

if TYPE_CHECKING:
    from taskgov_embedded.aws_api.patches import Patches


def install(patches: Patches) -> None:
    """Order dimensions by name (a metric has each name once)."""
    patches.replace(
        Dimension,
        "__lt__",
        lambda dimension, other: dimension.name < other.name,
        "moto's order of dimensions is none, so it misses series of three dimensions",
    )
