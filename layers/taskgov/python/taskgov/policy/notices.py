"""Who is notified of what, and when not: the section `notices` of the policy document.

The audit sends teams their findings, `publish_usage` notices of preempted and waiting tasks and of starvation. The
grammar is in `docs/policy.md`.
"""

import re
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Final, Literal
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, Field, WithJsonSchema

from taskgov.findings import Severity
from taskgov.policy.base import PolicyModel, TeamName

TOPIC_ARN: Final = r"^arn:aws[a-z\-]*:sns:[a-z0-9\-]+:[0-9]{12}:[A-Za-z0-9_\-]{1,256}$"
"""A standard SNS topic. Those of first-in-first-out order want a group for each message, and are not supported."""
TEAM_TOPIC_RULE: Final = (
    r"^arn:aws[a-z\-]*:sns:[a-z0-9\-]+:[0-9]{12}:[A-Za-z0-9_\-]{0,200}\{team\}[A-Za-z0-9_\-]{0,200}$"
)
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
"""In the order of `datetime.weekday`."""
CLOCK: Final = r"^(?:[01][0-9]|2[0-3]):[0-5][0-9]$"


def _clock_time(text: str) -> str:
    if not re.fullmatch(CLOCK.strip("^$"), text):
        raise ValueError("must be a time of day from 00:00 to 23:59")
    return text


ClockTime = Annotated[str, AfterValidator(_clock_time), WithJsonSchema({"type": "string", "pattern": CLOCK})]
"""Hours and minutes of a day, as in `19:00`."""
UpToAMonth = Annotated[int, Field(ge=1, le=31 * 24 * 60)]


class Occasion(StrEnum):
    """Events that teams are notified of at once."""

    PREEMPTED = "preempted"
    WAITING = "waiting"
    STARVED = "starved"


class Topics(PolicyModel):
    """SNS topics of teams: one rule for every team, and topics of single teams that win over it."""

    every_team: Annotated[str, Field(pattern=TEAM_TOPIC_RULE)] | None = None
    teams: dict[TeamName, Annotated[str, Field(pattern=TOPIC_ARN)]] = {}  # noqa: RUF012 -- pydantic copies defaults

    def topic_of(self, team: str) -> str | None:
        """Return the ARN of a team's topic, or None when it has none."""
        if team in self.teams:
            return self.teams[team]
        return None if self.every_team is None else self.every_team.replace("{team}", team)


class TeamNotices(Topics):
    """The topics of the owners of findings."""

    from_: Severity = Field(default=Severity.WARNING, alias="from")


class QuietHours(PolicyModel):
    """Hours of the clock on the wall of a time zone; `days` are those on which they begin, none means each day."""

    from_: ClockTime = Field(alias="from")
    to: ClockTime
    days: tuple[Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"], ...] = ()
    time_zone: str = "UTC"

    def hold(self, now: datetime) -> bool:
        """Return whether it is quiet now. Hours that end where they begin, or before, end on the next day.

        Example: from seven in the evening of Friday, in Berlin.
            >>> hours = QuietHours(from_="19:00", to="08:00", days=("fri",), time_zone="Europe/Berlin")
            >>> moments = ("2026-11-20T18:30Z", "2026-11-21T06:59Z", "2026-11-21T07:00Z")
            >>> [hours.hold(datetime.fromisoformat(each)) for each in moments]
            [True, True, False]

        """
        local = now.astimezone(ZoneInfo(self.time_zone))
        clock = f"{local:%H:%M}"
        if self.from_ < self.to:
            return self.from_ <= clock < self.to and self._begin_on(local)
        yesterday = local - timedelta(days=1)  # on the wall: an hour more or less is the same day
        return (clock >= self.from_ and self._begin_on(local)) or (clock < self.to and self._begin_on(yesterday))

    def _begin_on(self, local: datetime) -> bool:
        return not self.days or DAYS[local.weekday()] in self.days


class NoticeRules(TeamNotices):
    """The section `notices`: topics, what is sent at once, and when it has to wait."""

    chat: Topics = Topics()
    """Topics to which AWS's chat clients are subscribed: notices sent at once go there too, in their form."""
    about: tuple[Occasion, ...] = tuple(Occasion)
    pending_minutes: UpToAMonth | None = None
    """A task that waits longer than this is reported; None: none is."""
    starved_minutes: UpToAMonth = 5
    """A team has to be starved for so long: Kueue takes a moment to reclaim what others borrow."""
    quiet_hours: tuple[QuietHours, ...] = ()
    lines_per_notice: Annotated[int, Field(ge=1, le=100)] = 20
    notices_per_hour: Annotated[int, Field(ge=1, le=60)] = 6
    """To one topic; what comes beyond is gathered, as in quiet hours."""

    def is_quiet(self, now: datetime) -> bool:
        """Return whether people should be left alone now."""
        return any(hours.hold(now) for hours in self.quiet_hours)
