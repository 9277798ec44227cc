"""The rules of the section `notices` that no single field can break. `parse_policy` applies them with all others."""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from taskgov.policy.cron import is_time_zone
from taskgov.policy.draft import Broken, Draft
from taskgov.policy.notices import NoticeRules, TeamNotices
from taskgov.policy.rules import unknown_team
from taskgov.violations import Location

A_MONDAY: Final = datetime(2026, 1, 5, tzinfo=UTC)
"""The first of seven days on which quiet hours are tried."""
WEEK: Final = tuple(A_MONDAY + timedelta(minutes=minute) for minute in range(0, 7 * 24 * 60, 5))


def broken_notice_rules(draft: Draft) -> Iterator[Broken]:
    """Yield everything in `notices`, and in `audit.notices` before it, that breaks a rule."""
    old, rules = draft.document.audit.notices, draft.document.notices
    if old is not None:
        yield from _unknown_teams(draft, ("audit", "notices", "teams"), old.teams)
    if rules is not None:
        yield from _unknown_teams(draft, ("notices", "teams"), rules.teams)
        yield from _unknown_teams(draft, ("notices", "chat", "teams"), rules.chat.teams)
        yield from _two_places(old)
        yield from _shared_topics(draft, rules)
        yield from _quiet_hours(rules)


def _unknown_teams(draft: Draft, place: Location, names: Iterable[str]) -> Iterator[Broken]:
    """Refuse a topic for an unknown team: it would silently get nothing."""
    receivers = draft.receivers()
    for name in names:
        if name not in receivers:
            yield Broken((*place, name), name, unknown_team(receivers))


def _two_places(old: TeamNotices | None) -> Iterator[Broken]:
    """Refuse topics in two places: `notices` has taken the place of `audit.notices`."""
    if old is not None:
        stated = old.model_dump(mode="json", by_alias=True, exclude_unset=True)
        yield Broken(("audit", "notices"), stated, "cannot stand beside notices: move its keys there")


def _shared_topics(draft: Draft, rules: NoticeRules) -> Iterator[Broken]:
    """Refuse a topic for mail and chat: who reads mail would get JSON, and chat clients drop plain text."""
    rule = "must not be the topic for mail: each has its own form"
    if rules.chat.every_team is not None and rules.chat.every_team == rules.every_team:
        yield Broken(("notices", "chat", "everyTeam"), rules.chat.every_team, rule)
    mail = {topic for team in (*draft.receivers(), *rules.teams) if (topic := rules.topic_of(team))}
    for team, topic in rules.chat.teams.items():
        if topic in mail:
            yield Broken(("notices", "chat", "teams", team), topic, rule)


def _quiet_hours(rules: NoticeRules) -> Iterator[Broken]:
    """Refuse zones that are not in the IANA database, and hours that leave no time for notices."""
    hours = rules.quiet_hours
    unknown = [index for index, window in enumerate(hours) if not is_time_zone(window.time_zone)]
    for index in unknown:
        place: Location = ("notices", "quietHours", index, "timeZone")
        yield Broken(place, hours[index].time_zone, "must be a time zone such as Europe/Berlin or UTC")
    if hours and not unknown and all(rules.is_quiet(moment) for moment in WEEK):
        stated = [window.model_dump(mode="json", by_alias=True, exclude_unset=True) for window in hours]
        yield Broken(("notices", "quietHours"), stated, "leaves no time for notices: name no topics instead")
