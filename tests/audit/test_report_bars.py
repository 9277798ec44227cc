"""The geometry of the quota bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.audit.report_bars import Segment, bar, bar_groups
from tests.support.reports import a_usage_line

AMOUNTS = st.integers(min_value=0, max_value=512)


def test_a_borrowing_team_is_drawn_past_its_quota_mark() -> None:
    drawn = bar(a_usage_line(used=12.0, borrowed=4.0, idle=0.0), scale=16.0)
    assert drawn.segments == (Segment("own", 8.0, 0.5), Segment("borrowed", 4.0, 0.25))
    assert drawn.quota_mark == 0.5
    assert drawn.limit_mark == 0.75


def test_a_lending_team_shows_what_is_lent_between_used_and_idle() -> None:
    drawn = bar(a_usage_line(used=2.0, lent=4.0, idle=2.0), scale=8.0)
    assert [part.kind for part in drawn.segments] == ["own", "lent", "idle"]
    assert [part.size for part in drawn.segments] == [0.25, 0.5, 0.25]


def test_a_limit_that_is_off_the_scale_or_not_set_has_no_mark() -> None:
    assert bar(a_usage_line(borrow_limit=40.0), scale=8.0).limit_mark is None
    assert bar(a_usage_line(borrow_limit=None), scale=8.0).limit_mark is None


def test_bars_of_a_type_share_one_scale_and_other_resources_are_left_out() -> None:
    lines = [
        a_usage_line("team-b", used=16.0, borrowed=8.0),
        a_usage_line("team-a"),
        a_usage_line("team-a", resource="cpu", leading=False, used=1000.0),
    ]
    (group,) = bar_groups(lines)
    assert [one.line.team for one in group.bars] == ["team-b", "team-a"]
    assert [one.quota_mark for one in group.bars] == [0.5, 0.5]
    assert (group.guaranteed, group.used) == (16.0, 20.0)


def test_a_group_in_which_nobody_has_anything_can_be_drawn() -> None:
    (group,) = bar_groups([a_usage_line(guaranteed=0.0, used=0.0, idle=0.0, borrow_limit=0.0)])
    assert group.bars[0].segments == ()


@given(quota=AMOUNTS, own=AMOUNTS, lent=AMOUNTS, beyond=AMOUNTS, over=st.booleans())
def test_the_parts_add_up_to_the_greater_of_quota_and_use(
    quota: int, own: int, lent: int, beyond: int, over: bool
) -> None:
    own, lent = min(own, quota), min(lent, quota - min(own, quota))
    beyond = beyond if own == quota else 0
    line = a_usage_line(
        guaranteed=float(quota),
        used=float(own + beyond),
        lent=float(lent),
        borrowed=0.0 if over else float(beyond),
        over_quota=float(beyond) if over else 0.0,
    )
    parts = bar(line, scale=1024.0).segments
    assert all(part.amount > 0 for part in parts)
    assert sum(part.amount for part in parts) == max(quota, own + beyond)
    assert sum(part.size for part in parts) == pytest.approx(max(quota, own + beyond) / 1024, abs=0.0001)
