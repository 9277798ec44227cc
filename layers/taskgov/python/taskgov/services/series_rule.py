"""Which teams have metric series of their own? All, where they fit; the rule of the limit in any other case.

CloudWatch bills a series for each hour in which it has a value, so that the limit is one of an hour. Teams that fit
have series of their own; the others are one team, `other`, with the sum of what they have (or the maximum, or nothing:
the catalogue says which). Values without a team are always published, and what `other` may need is always kept free.

The first measurement of an hour decides which teams have series of their own. First come teams that used something,
waited or were preempted in this hour or the one before, then teams that had series of their own before, then the others
by name. A tenth of the limit is not given to teams without work, so that it is free for those that begin to work within
the hour. Until the hour ends no team loses its series, unless a team has new ones that do not fit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain, groupby
from operator import attrgetter
from typing import Final, NamedTuple

from taskgov.estimates.kept import ALL_TEAMS
from taskgov.findings import Severity
from taskgov.ports import Measurement
from taskgov.services import metric_catalogue as metric
from taskgov.services.metric_form import PER_PREEMPTION, WHOLE_CLUSTER, Property
from taskgov.services.series_memory import SeriesMemory

OTHER: Final = "other"
"""The team that stands for all without series of their own."""
FIXED: Final = sum(known.dimensions == WHOLE_CLUSTER for known in metric.METRICS) + len(Severity)
"""Series of a cluster that no team, instance type or preemption adds to: counted whether they have values or not."""
FREE_PART: Final = 10
"""One part in so many of the limit is left to teams that begin to work within the hour."""
KNOWN_REASONS: Final = 4
"""Reasons of preemptions that Kueue has."""
BUSY: Final = frozenset((metric.QUOTA_USED.name, metric.PENDING_WORKLOADS.name, metric.PREEMPTIONS.name))
HOUR: Final = timedelta(hours=1)

_BY_NAME: Final = {known.name: known for known in metric.METRICS}
_OF_PREEMPTIONS: Final = tuple(known.name for known in metric.METRICS if known.dimensions == PER_PREEMPTION)
_LEFT_OUT: Final = frozenset(known.name for known in metric.METRICS if known.together == "left out")
_TOGETHER: Final = (OTHER,) * len(PER_PREEMPTION)
_NAME: Final = attrgetter("name")


class OfTeam(NamedTuple):
    """Values of a team that have the same dimensions."""

    series: frozenset[str]
    """Those of the team's own."""
    together: str
    """The dimensions of `other`, whose series they are part of where the team has no series of its own."""
    values: Sequence[Measurement]


@dataclass(frozen=True, slots=True)
class Values:
    """The values of a measurement, by how they may be published."""

    always: tuple[Measurement, ...]
    of_teams: Mapping[str, Sequence[OfTeam]]
    preemptions: tuple[Measurement, ...]
    base: frozenset[str]
    """Series that do not depend on which teams have their own: those without a team, and all that `other` may need."""
    all: frozenset[str]
    """These, and every series that there would be without a limit."""


def fits_in_any_case(values: Values, limit: int) -> bool:
    """Return whether the series of an hour stay within the limit for all pairs of teams: nothing has to be kept."""
    reasons = {value.dimensions["Reason"] for value in values.preemptions}
    preempted = len(_OF_PREEMPTIONS) * max(len(reasons), KNOWN_REASONS) * (len(values.of_teams) + 1) ** 2
    return FIXED + len(values.all) + preempted <= limit


def bounded(
    values: Values, before: SeriesMemory | None, limit: int, now: datetime
) -> tuple[list[Measurement], SeriesMemory]:
    """Return what is published of the values of a measurement, and what to keep.

    All series of an hour are at most `limit`, as long as those without a team and of `other` are. Sums and maxima over
    all teams are what they were.
    """
    hour = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    this_hour = before if before is not None and before.hour == hour else None
    busy = _busy(values, before, hour)
    room = limit - FIXED
    taken = set(values.base | (this_hour.series if this_hour else frozenset()))
    if len(values.all) <= room and len(taken | values.all) <= room:
        own = frozenset(values.of_teams)
        taken |= values.all
    else:
        own = _own(values, busy, before, this_hour, taken, room)
    published = [*values.always, *_of_teams(values, own), *_preemptions(values, own, taken, room)]
    memory = SeriesMemory(
        hour=hour,
        limit=limit,
        wanted=FIXED + len(values.all),
        teams=len(values.of_teams),
        own=tuple(sorted(own)),
        busy=busy,
        series=frozenset(taken),
    )
    return published, memory


def sorted_out(measured: Iterable[Measurement]) -> Values:
    """Return the values of a measurement, by how they may be published."""
    always, preemptions = list[Measurement](), list[Measurement]()
    of_teams: dict[str, list[OfTeam]] = {}
    names: dict[str, set[str]] = {}
    for dimensions, some in groupby(measured, attrgetter("dimensions")):  # the values of a quota follow one another
        team = dimensions.get("Team", ALL_TEAMS)
        if "PreemptingTeam" in dimensions:
            preemptions += some
        elif team == ALL_TEAMS:
            always += some
        else:
            own, other = _place(dimensions.values()), _place({**dimensions, "Team": OTHER}.values())
            its_values = list(some)
            entry = OfTeam(frozenset([value.name + own for value in its_values]), other, its_values)
            of_teams.setdefault(team, []).append(entry)
            names.setdefault(other, set()).update(map(_NAME, its_values))
    together = (name + other for other, its_names in names.items() for name in its_names - _LEFT_OUT)
    preempted = (_series(name, _TOGETHER) for name in _OF_PREEMPTIONS)
    base = frozenset(chain(_series_of(always), together, preempted))
    every = base.union(_series_of(preemptions), *(entry.series for some in of_teams.values() for entry in some))
    return Values(tuple(always), of_teams, tuple(preemptions), base, every)


def _series_of(measured: Iterable[Measurement]) -> Iterator[str]:
    """Return the series of values with dimensions, as they are kept: the metric's name and its dimensions."""
    return (_series(value.name, value.dimensions.values()) for value in measured if value.dimensions)


def _series(name: str, dimensions: Iterable[str]) -> str:
    return name + _place(dimensions)


def _place(dimensions: Iterable[str]) -> str:
    return "|".join(("", *dimensions))


def _busy(values: Values, before: SeriesMemory | None, hour: datetime) -> dict[str, datetime]:
    """Return the teams that used something, waited or were preempted lately, and the last hour in which they did.

    What a team uses beside accelerators travels as properties.
    """
    known = before.busy if before else {}
    busy = {team: at for team, at in known.items() if hour - HOUR <= at <= hour}
    of_teams = (value for some in values.of_teams.values() for entry in some for value in entry.values)
    for value in chain(of_teams, values.preemptions, values.always):
        if value.name in BUSY and max((value.value, *_amounts(value.properties.values()))) > 0:
            busy[value.dimensions["Team"]] = hour
    return dict(sorted(busy.items()))


def _amounts(properties: Iterable[Property]) -> list[float]:
    """Return the properties that are amounts."""
    return [number for number in properties if not isinstance(number, (str, bool))]


def _own(
    values: Values,
    busy: Mapping[str, datetime],
    before: SeriesMemory | None,
    this_hour: SeriesMemory | None,
    taken: set[str],
    room: int,
) -> frozenset[str]:
    """Return the teams with series of their own; `taken` gets them too."""
    kept, earlier = frozenset(this_hour.own if this_hour else ()), frozenset(before.own if before else ())
    own = set()
    for team in sorted(
        values.of_teams.keys() - {OTHER},  # a team of that name cannot be distinguished from the others
        key=lambda name: (name not in kept, name not in busy, name not in earlier, name),
    ):
        new = set[str]().union(*(entry.series for entry in values.of_teams[team])) - taken
        most = room if team in kept or team in busy else room - room // FREE_PART
        if len(taken) + len(new) <= most:
            own.add(team)
            taken |= new
    return frozenset(own)


def _of_teams(values: Values, own: frozenset[str]) -> Iterator[Measurement]:
    others: list[OfTeam] = []
    for team, some in values.of_teams.items():
        if team in own:
            yield from chain.from_iterable(entry.values for entry in some)
        else:
            others += some
    told = ((value.name + entry.together, value) for entry in others for value in entry.values)
    for value in _merged((key, value) for key, value in told if value.name not in _LEFT_OUT):
        yield value._replace(dimensions={**value.dimensions, "Team": OTHER})


def _preemptions(values: Values, own: frozenset[str], taken: set[str], room: int) -> Iterator[Measurement]:
    """Return the preemptions, those of the others as one team; where even that has too many series, all as one."""
    cut = own != values.of_teams.keys()
    told = []
    for value in values.preemptions:
        dimensions = {
            key: OTHER if cut and key != "Reason" and name in values.of_teams and name not in own else name
            for key, name in value.dimensions.items()
        }
        new = {_series(name, dimensions.values()) for name in _OF_PREEMPTIONS} - taken
        if len(taken) + len(new) > room:
            dimensions, new = dict.fromkeys(dimensions, OTHER), set()
        taken |= new
        told.append((_series(value.name, dimensions.values()), value._replace(dimensions=dimensions)))
    yield from _merged(told)


def _merged(some: Iterable[tuple[str, Measurement]]) -> Iterator[Measurement]:
    """Return one value for each series, with the sum or the maximum of all its values."""
    groups: dict[str, list[Measurement]] = {}
    for series, value in some:
        groups.setdefault(series, []).append(value)
    for group in groups.values():
        first = group[0]
        together = max if _BY_NAME[first.name].together == "max" else sum
        properties = _sums(value.properties for value in group)
        yield first._replace(value=together([value.value for value in group]), properties=properties)


def _sums(some: Iterable[Mapping[str, Property]]) -> dict[str, float]:
    """Return the sums of the amounts in properties, by name. Those of one metric mostly have the same names."""
    alike: dict[tuple[str, ...], list[Iterable[Property]]] = {}
    for properties in some:
        alike.setdefault(tuple(properties), []).append(properties.values())
    numbers: dict[str, list[float]] = {}
    for names, rows in alike.items():
        for name, column in zip(names, zip(*rows, strict=True), strict=True):
            numbers.setdefault(name, []).extend(_amounts(column))
    return {name: sum(sorted(amounts)) for name, amounts in sorted(numbers.items()) if amounts}
