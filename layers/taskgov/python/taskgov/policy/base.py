"""What all parts of the policy document are made of: the base of its models, and the kinds of values."""

from datetime import UTC, datetime
from typing import Annotated, Final

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from taskgov.hyperpod.limits import TEAM_NAME, InstanceTypeName, Length

TeamName = Annotated[str, TEAM_NAME, Length(1, 51)]
"""A team's name by the API's pattern; with `hyperpod-ns-` before it, it must fit a namespace (63 characters)."""
InstanceType = Annotated[str, InstanceTypeName()]
Percent = Annotated[float, Field(ge=0, le=100)]
LossPercent = Annotated[float, Field(gt=0, le=100)]
Growth = Annotated[float, Field(ge=0, le=100_000)]
Minutes = Annotated[int, Field(ge=0, le=7 * 24 * 60)]
Hours = Annotated[int, Field(ge=1, le=24 * 31)]
Whole = Annotated[int, Field(ge=0, le=10_000_000)]
"""A count: more than there is anywhere, and far below where sums of any resource overflow (`UNLIMITED`)."""
Gibibytes = Annotated[float, Field(gt=0, le=1_000_000)]
FIRST_MOMENT: Final = datetime(2000, 1, 1, tzinfo=UTC)


def _within_reach(moment: datetime) -> datetime:
    """Refuse moments that another time zone cannot express: they are shown, compared and scheduled in UTC."""
    try:
        reachable = moment.astimezone(UTC) >= FIRST_MOMENT
    except OverflowError:
        reachable = False
    if not reachable:
        raise ValueError("must be in the years 2000 to 9999 of UTC")
    return moment


Moment = Annotated[AwareDatetime, AfterValidator(_within_reach)]


def _in_one_line(text: str) -> str:
    """Return a text that people read, in one line: a block of YAML ends with a line break, or has several."""
    if not (line := " ".join(text.split())):
        raise ValueError("must not be blank")
    return line


Text = Annotated[str, Field(min_length=1, max_length=256), AfterValidator(_in_one_line)]
Pattern = Annotated[str, Field(min_length=1, max_length=256)]
"""Text in which `*` stands for anything, also for nothing; every other character stands for itself."""


class PolicyModel(BaseModel):
    """A part of the document: immutable, camelCase outside, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        allow_inf_nan=False,
        defer_build=True,
    )
