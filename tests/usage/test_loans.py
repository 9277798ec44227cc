import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.usage.loans import Account, LoanAttribution, apportion, attribute_alone, attribute_loans

LIMIT = st.none() | st.integers(0, 20)
ACCOUNTS = st.lists(
    st.builds(
        Account,
        name=st.sampled_from("abcdef"),
        nominal=st.integers(0, 20),
        used=st.integers(0, 30),
        borrowing_limit=LIMIT,
        lending_limit=LIMIT,
    ),
    unique_by=lambda one: one.name,
)


@given(ACCOUNTS)
def test_what_is_borrowed_is_what_is_lent(accounts: list[Account]) -> None:
    settled = attribute_loans(accounts)

    assert sum(one.borrowed for one in settled.values()) == sum(one.lent for one in settled.values())


@given(ACCOUNTS)
def test_nothing_is_lost_and_no_limit_is_passed(accounts: list[Account]) -> None:
    settled = attribute_loans(accounts)

    for one in accounts:
        of = settled[one.name]
        assert min(of.borrowed, of.over_quota, of.lent, of.idle) >= 0
        assert of.borrowed + of.over_quota == max(0, one.used - one.nominal)
        assert of.lent + of.idle == max(0, one.nominal - one.used)
        assert one.borrowing_limit is None or of.borrowed <= one.borrowing_limit
        assert one.lending_limit is None or of.lent <= one.lending_limit


@given(ACCOUNTS, st.randoms())
def test_the_order_of_the_accounts_changes_nothing(accounts: list[Account], chance: object) -> None:
    assert attribute_loans(accounts) == attribute_loans(list(reversed(accounts)))


@given(ACCOUNTS)
def test_over_quota_is_only_what_cannot_be_a_loan(accounts: list[Account]) -> None:
    settled = attribute_loans(accounts)

    for one in accounts:
        could_borrow_more = settled[one.name].borrowed < one.borrowable
        lendable_left = sum(each.lendable - settled[each.name].lent for each in accounts)
        assert not (could_borrow_more and lendable_left)


def test_a_quota_lowered_below_what_runs_is_over_quota_and_not_borrowing() -> None:
    settled = attribute_loans([Account("a", nominal=2, used=4, borrowing_limit=1), Account("b", nominal=2, used=2)])

    assert settled["a"] == LoanAttribution(borrowed=0, over_quota=2)


def test_the_part_of_an_excess_that_others_leave_idle_is_borrowed() -> None:
    settled = attribute_loans([Account("a", nominal=2, used=5), Account("b", nominal=3, used=1)])

    assert settled["a"] == LoanAttribution(borrowed=2, over_quota=1)
    assert settled["b"] == LoanAttribution(lent=2)


def test_two_borrowers_of_too_little_share_the_loan_by_what_they_hold_above() -> None:
    settled = attribute_loans([Account("a", 0, 4), Account("b", 0, 2), Account("c", 3, 0)])

    assert (settled["a"].borrowed, settled["b"].borrowed, settled["c"].lent) == (2, 1, 3)


def test_outside_a_cohort_nothing_is_borrowed_or_lent() -> None:
    assert attribute_alone(Account("a", nominal=2, used=3)) == LoanAttribution(over_quota=1)
    assert attribute_alone(Account("a", nominal=3, used=1)) == LoanAttribution(idle=2)


@pytest.mark.parametrize(
    ("total", "weights", "want"),
    [
        (10, {"a": 4, "b": 4, "c": 4}, {"a": 4, "b": 3, "c": 3}),
        (1, {"b": 5, "a": 5}, {"b": 0, "a": 1}),
        (0, {"a": 3}, {"a": 0}),
        (0, {"a": 0}, {"a": 0}),
        (7, {"a": 5, "b": 2}, {"a": 5, "b": 2}),
        (9, {"a": 5, "b": 2}, {"a": 5, "b": 2}),
    ],
)
def test_a_loan_is_divided_in_proportion_and_nobody_lends_more_than_it_has(
    total: int, weights: dict[str, int], want: dict[str, int]
) -> None:
    assert apportion(total, weights) == want
