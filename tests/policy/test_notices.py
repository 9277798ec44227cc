"""The section `notices`: what it refuses, what `audit.notices` still means, and when it is quiet."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import yaml

from taskgov.policy.notices import NoticeRules, Occasion, QuietHours
from taskgov.policy.parse import ParsedPolicy, parse_policy

TOPIC = "arn:aws:sns:us-east-1:111122223333:taskgov-team-"
EVERY = f"{TOPIC}{{team}}"
BERLIN = "Europe/Berlin"


def parsed(**parts: Any) -> ParsedPolicy:
    cluster = {"name": "ml-cluster", "arn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}
    team = {"name": "team-a", "share": [{"instanceType": "ml.g5.xlarge", "percent": 50}]}
    document = {"apiVersion": "taskgov/v1", "cluster": cluster, "teams": [team], **parts}
    return parse_policy(yaml.safe_dump(document))


def rules(**parts: Any) -> NoticeRules:
    found = parsed(**parts)
    assert found.document is not None, found.violations
    return found.document.notice_rules


def violations(**parts: Any) -> list[tuple[str, str, str]]:
    return [(one.path, one.value, one.rule) for one in parsed(**parts).violations]


def test_without_the_section_nobody_is_notified_and_no_wait_is_too_long() -> None:
    found = rules()
    assert (found.topic_of("team-a"), found.chat.topic_of("team-a"), found.pending_minutes) == (None, None, None)


def test_the_old_place_of_topics_is_read_and_means_findings_only() -> None:
    found = rules(audit={"notices": {"everyTeam": EVERY, "from": "error"}})
    assert (found.topic_of("team-a"), found.from_.value, found.about) == (f"{TOPIC}team-a", "error", ())


def test_topics_in_the_new_place_get_everything_unless_they_say_less() -> None:
    assert rules(notices={"everyTeam": EVERY}).about == tuple(Occasion)
    assert rules(notices={"everyTeam": EVERY, "about": ["starved"]}).about == (Occasion.STARVED,)


def test_topics_in_both_places_are_refused() -> None:
    assert violations(notices={"from": "info"}, audit={"notices": {"from": "error"}}) == [
        ("audit.notices", '{"from": "error"}', "cannot stand beside notices: move its keys there")
    ]


@pytest.mark.parametrize("place", [("notices", "teams"), ("notices", "chat", "teams"), ("audit", "notices", "teams")])
def test_a_topic_of_a_team_that_is_not_there_is_refused_wherever_it_stands(place: tuple[str, ...]) -> None:
    section: Any = {"team-z": f"{TOPIC}team-z"}
    for key in reversed(place[1:]):
        section = {key: section}
    assert violations(**{place[0]: section}) == [
        (f"{'.'.join(place)}.team-z", '"team-z"', "must be a team of this document: team-a")
    ]


@pytest.mark.parametrize(
    ("notices", "path"),
    [
        ({"everyTeam": EVERY, "chat": {"everyTeam": EVERY}}, "notices.chat.everyTeam"),
        ({"everyTeam": EVERY, "chat": {"teams": {"team-a": f"{TOPIC}team-a"}}}, "notices.chat.teams.team-a"),
        ({"teams": {"team-a": f"{TOPIC}x"}, "chat": {"teams": {"team-a": f"{TOPIC}x"}}}, "notices.chat.teams.team-a"),
    ],
    ids=["by the rule", "one team by the rule", "one team by name"],
)
def test_chat_has_other_topics_than_mail(notices: dict[str, Any], path: str) -> None:
    [(where, _, rule)] = violations(notices=notices)
    assert (where, rule) == (path, "must not be the topic for mail: each has its own form")


def test_all_mistakes_of_the_section_are_named_at_once() -> None:
    quiet = [{"from": "19:60", "to": 8, "days": ["mo"]}, {"from": "19:00", "to": "20:00", "timeZone": "Europe/Berln"}]
    found = violations(notices={"about": ["slept"], "pendingMinutes": 0, "noticesPerHour": 61, "quietHours": quiet})
    assert found == [
        ("notices.about[0]", '"slept"', "must be 'preempted', 'waiting' or 'starved'"),
        ("notices.pendingMinutes", "0", "must be greater than or equal to 1"),
        ("notices.quietHours[0].from", '"19:60"', "must be a time of day from 00:00 to 23:59"),
        ("notices.quietHours[0].to", "8", "must be a text"),
        ("notices.quietHours[0].days[0]", '"mo"', "must be 'mon', 'tue', 'wed', 'thu', 'fri', 'sat' or 'sun'"),
        ("notices.noticesPerHour", "61", "must be less than or equal to 60"),
        ("notices.quietHours[1].timeZone", '"Europe/Berln"', "must be a time zone such as Europe/Berlin or UTC"),
    ]


@pytest.mark.parametrize(
    "quiet",
    [
        [{"from": "08:00", "to": "08:00"}],
        [{"from": "08:00", "to": "20:00"}, {"from": "15:00", "to": "03:00", "timeZone": "America/New_York"}],
    ],
    ids=["a day of 24 hours", "two zones that fill the day"],
)
def test_hours_that_leave_no_time_are_refused(quiet: list[dict[str, str]]) -> None:
    [(where, _, rule)] = violations(notices={"quietHours": quiet})
    assert (where, rule) == ("notices.quietHours", "leaves no time for notices: name no topics instead")


def at(text: str, zone: str = BERLIN) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)


@pytest.mark.parametrize(
    ("moment", "quiet"),
    [
        ("2026-11-20T18:59", False),
        ("2026-11-20T19:00", True),
        ("2026-11-21T07:59:59", True),
        ("2026-11-21T08:00", False),
    ],
)
def test_hours_over_midnight_begin_and_end_by_the_clock_of_their_zone(moment: str, quiet: bool) -> None:
    hours = QuietHours(from_="19:00", to="08:00", time_zone=BERLIN)
    assert hours.hold(at(moment)) is quiet


@pytest.mark.parametrize("day", ["2026-03-29", "2026-10-25"], ids=["an hour shorter", "an hour longer"])
def test_a_night_on_which_the_clock_is_changed_ends_by_the_clock_too(day: str) -> None:
    hours = QuietHours(from_="19:00", to="08:00", time_zone=BERLIN)
    assert [hours.hold(at(f"{day}T{clock}")) for clock in ("02:30", "07:59", "08:00")] == [True, True, False]


def test_the_days_are_those_on_which_the_hours_begin() -> None:
    night = QuietHours(from_="19:00", to="08:00", days=("fri",), time_zone=BERLIN)
    friday, saturday = "2026-11-20", "2026-11-21"
    moments = (f"{friday}T07:00", f"{friday}T23:00", f"{saturday}T07:00", f"{saturday}T23:00")
    assert [night.hold(at(each)) for each in moments] == [False, True, True, False]


def test_a_weekend_is_two_days_of_24_hours() -> None:
    weekend = QuietHours(from_="00:00", to="00:00", days=("sat", "sun"), time_zone=BERLIN)
    start = at("2026-11-20T12:00")
    quiet = [weekend.hold(start + timedelta(hours=each)) for each in range(72)]
    assert quiet == [False] * 12 + [True] * 48 + [False] * 12
