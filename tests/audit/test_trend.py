"""What an audit says of those before it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from taskgov.audit.trend import KEPT, SHOWN, AuditHistory, AuditPoint, Earlier, history_from_json, history_to_json
from taskgov.findings import Finding, Severity
from tests.allocation.world import NOW

IDLE = Finding("idle-quota", Severity.INFO, "team-a", "3 idle", "r", {"idle": 3, "instanceType": "ml.g5.8xlarge"})
DRIFT = Finding("quota-drift", Severity.WARNING, "team-a", "it differs", "r", {"reason": "share"})
POINT = AuditPoint("GPUs", 8, 8, 6, 2, 2, 0, 1, 4, 0, NOW, "", {"info": 1}, 0)
DAY = timedelta(days=1)


def after_nights(*nights: list[Finding]) -> AuditHistory:
    """One audit a night, the last one a day before now."""
    history = AuditHistory()
    for number, found in enumerate(nights):
        at = NOW - (len(nights) - number) * DAY
        earlier = Earlier(history, f"night-{number}")
        history = earlier.after(replace(POINT, taken_at=at), [(each, earlier.seen(each, at)) for each in found])
    return history


def tonight(*nights: list[Finding]) -> Earlier:
    return Earlier(after_nights(*nights), "tonight")


def test_without_an_audit_before_nothing_is_new() -> None:
    seen = tonight().seen(IDLE, NOW)
    assert (seen.first_seen, seen.audits, seen.is_new) == (NOW, 1, False)


def test_a_finding_is_the_same_however_its_numbers_move() -> None:
    seen = tonight([IDLE], [IDLE]).seen(replace(IDLE, evidence={**IDLE.evidence, "idle": 1}, because="1 idle"), NOW)
    assert (seen.first_seen, seen.audits, seen.is_new) == (NOW - 2 * DAY, 3, False)


def test_a_finding_of_another_instance_type_is_another_one() -> None:
    other = replace(IDLE, evidence={"instanceType": "ml.p5.48xlarge"})
    assert tonight([IDLE]).seen(other, NOW).is_new


def test_what_was_gone_for_a_night_begins_anew() -> None:
    seen = tonight([DRIFT], []).seen(DRIFT, NOW)
    assert (seen.audits, seen.is_new) == (1, True)


def test_what_the_audit_before_found_and_this_one_does_not_is_gone() -> None:
    trend = tonight([IDLE], [IDLE, DRIFT]).trend([IDLE], 0, NOW)
    [gone] = trend.resolved
    assert (gone.code, gone.subject, gone.because, gone.first_seen) == (
        "quota-drift",
        "team-a",
        "it differs",
        NOW - DAY,
    )


def test_a_week_ago_is_the_newest_audit_that_is_a_week_old() -> None:
    trend = tonight(*([] for _ in range(10))).trend([], 0, NOW)
    assert trend.previous is not None
    assert trend.week_ago is not None
    assert (NOW - trend.previous.taken_at, NOW - trend.week_ago.taken_at) == (DAY, 7 * DAY)
    assert tonight([], []).trend([], 0, NOW).week_ago is None


def test_a_second_try_takes_the_place_of_the_first_and_compares_with_the_audit_before() -> None:
    first = tonight([IDLE])
    history = first.after(replace(POINT, taken_at=NOW), [(DRIFT, first.seen(DRIFT, NOW))])
    second = Earlier(history, "tonight")
    assert second.seen(DRIFT, NOW).is_new
    assert [each.code for each in second.trend([DRIFT], 1, NOW).resolved] == ["idle-quota"]
    again = second.after(replace(POINT, taken_at=NOW), [(DRIFT, second.seen(DRIFT, NOW))])
    assert again == history


def test_the_history_stays_bounded_and_a_report_shows_a_month() -> None:
    point = replace(POINT, run_id="old")
    many = Earlier(AuditHistory(points=(point,) * (KEPT + 5)), "tonight")
    assert len(many.after(POINT, []).points) == KEPT
    assert len(many.trend([], 0, NOW).points) == SHOWN


def test_a_history_survives_its_bytes() -> None:
    history = after_nights([IDLE], [IDLE, DRIFT])
    assert history_from_json(history_to_json(history)) == history
    assert history_from_json(None) == AuditHistory()


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b'{"points": 3}'])
def test_what_is_no_history_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="AuditHistory"):
        history_from_json(text)
