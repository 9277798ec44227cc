"""A guarantee on a hardware family: an amount, or a share, of all instance types that a selector stands for."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from taskgov.hyperpod.hardware import ACCELERATORS, is_selector
from taskgov.policy.base import Percent, PolicyModel, Whole
from taskgov.policy.measured import Unit


def _selector(text: str) -> str:
    if not is_selector(text):
        known = ", ".join(ACCELERATORS)
        raise ValueError(f"must be a family such as p5, an accelerator ({known}) or a pattern such as ml.p5.*")
    return text


class FamilyPromise(PolicyModel):
    """So many instances or accelerators of a family (`count`), or a share of each of its types, in whole units.

    The plan divides `count`, `floor` and `ceiling` over the types that the cluster has, by what there is of each.
    """

    family: Annotated[str, AfterValidator(_selector)]
    unit: Literal[Unit.INSTANCES, Unit.ACCELERATORS] = Unit.INSTANCES
    count: Whole | None = None
    percent: Percent | None = None
    weight: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    floor: Whole = 0
    ceiling: Whole | None = None

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        given = [name for name in ("count", "percent", "weight") if getattr(self, name) is not None]
        if len(given) != 1:
            raise ValueError(f"needs one of count, percent and weight; it has {' and '.join(given) or 'none'}")
        if self.count is not None and (self.floor or self.ceiling is not None):
            raise ValueError("floor and ceiling are of a share: they cannot stand beside count")
        if self.ceiling is not None and self.floor > self.ceiling:
            raise ValueError(f"has a floor of {self.floor} above its ceiling of {self.ceiling}")
        return self

    @property
    def words(self) -> str:
        """The selector as sentences say it."""
        return f"family {self.family}"
