from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.shortage import Cut, fit, promised


@dataclass(frozen=True)
class Asked:
    key: str
    amount: int
    floor: int
    tier: int


def cut_of(asked: Sequence[Asked], capacity: int) -> Cut:
    tiers = {
        tier: [promised(party.key, party.amount, party.floor) for party in asked if party.tier == tier]
        for tier in {party.tier for party in asked}
    }
    return fit(tiers, capacity)


CASES = {
    "promises that fit are kept": ([Asked("a", 4, 0, 1), Asked("b", 4, 0, 2)], 8, [4, 4]),
    "the highest tier number gives first": ([Asked("a", 4, 0, 1), Asked("b", 4, 0, 2)], 6, [4, 2]),
    "the next tier gives when the first has nothing left": (
        [Asked("a", 4, 0, 1), Asked("b", 4, 0, 2)],
        3,
        [3, 0],
    ),
    "a floor is kept while another tier can give": ([Asked("a", 6, 2, 1), Asked("b", 6, 4, 2)], 8, [4, 4]),
    "within a tier everyone gives in proportion": ([Asked("a", 8, 0, 1), Asked("b", 4, 0, 1)], 9, [6, 3]),
    "remainders within a tier go by size, then by name": ([Asked("a", 5, 0, 1), Asked("b", 5, 0, 1)], 9, [5, 4]),
    "who stands on a floor leaves the cut to the others of its tier": (
        [Asked("a", 4, 4, 1), Asked("b", 4, 0, 1)],
        5,
        [4, 1],
    ),
    "a floor above the promise asks for no more than the promise": (
        [Asked("a", 2, 9, 1), Asked("b", 2, 0, 1)],
        3,
        [2, 1],
    ),
}


@pytest.mark.parametrize(("claims", "capacity", "want"), CASES.values(), ids=CASES.keys())
def test_tiers_give(claims: list[Asked], capacity: int, want: list[int]) -> None:
    cut = cut_of(claims, capacity)
    assert ([cut.amounts[claim.key] for claim in claims], cut.incident) == (want, False)


def test_floors_that_do_not_fit_are_scaled_down_and_are_an_incident() -> None:
    cut = cut_of([Asked("a", 6, 3, 1), Asked("b", 6, 6, 9), Asked("c", 9, 0, 1)], 6)
    assert cut.incident
    assert cut.amounts == {"a": 2, "b": 4, "c": 0}


claims = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20), st.integers(1, 3)), max_size=7).map(
    lambda drawn: [Asked(f"team-{n}", amount, floor, tier) for n, (amount, floor, tier) in enumerate(drawn)]
)


def test_of_less_than_nothing_nobody_gets_anything() -> None:
    assert cut_of([Asked("a", 4, 0, 1), Asked("b", 4, 2, 1)], -3).amounts == {"a": 0, "b": 0}
    assert cut_of([Asked("a", 4, 0, 1)], -3).amounts == {"a": 0}


@given(claims, st.integers(0, 60))
def test_all_capacity_is_given_but_never_more(asked: list[Asked], capacity: int) -> None:
    cut = cut_of(asked, capacity)
    floors = sum(min(claim.floor, claim.amount) for claim in asked)
    promised = sum(claim.amount for claim in asked)
    assert sum(cut.amounts.values()) == min(capacity, floors if cut.incident else promised)
    assert cut.incident == (floors > capacity)


@given(claims, st.integers(0, 60))
def test_nobody_gets_more_than_promised_or_less_than_a_floor_that_fits(asked: list[Asked], capacity: int) -> None:
    cut = cut_of(asked, capacity)
    assert all(cut.amounts[claim.key] <= claim.amount for claim in asked)
    assert cut.incident or all(cut.amounts[claim.key] >= min(claim.floor, claim.amount) for claim in asked)


@given(claims, st.integers(0, 60))
def test_a_lower_tier_gives_only_when_the_higher_ones_stand_on_their_floors(asked: list[Asked], capacity: int) -> None:
    cut = cut_of(asked, capacity)
    giving = [claim.tier for claim in asked if cut.amounts[claim.key] < claim.amount]
    above = [claim for claim in asked if not cut.incident and claim.tier > min(giving, default=9)]
    assert all(cut.amounts[claim.key] == min(claim.floor, claim.amount) for claim in above)


@given(claims, st.integers(0, 59), st.integers(1, 9))
def test_easing_a_shortage_never_takes_from_anybody(asked: list[Asked], capacity: int, more: int) -> None:
    less, greater = cut_of(asked, capacity).amounts, cut_of(asked, capacity + more).amounts
    assert all(less[key] <= greater[key] for key in less)


@given(claims, st.integers(0, 59))
def test_a_share_that_grows_with_capacity_takes_from_nobody(asked: list[Asked], capacity: int) -> None:
    """One instance more, and the promise of one share grows by it."""
    for grower in asked:
        grown = [replace(each, amount=each.amount + 1) if each is grower else each for each in asked]
        less, greater = cut_of(asked, capacity).amounts, cut_of(grown, capacity + 1).amounts
        floors = sum(min(each.floor, each.amount) for each in asked)
        if floors <= capacity and grower.floor <= grower.amount:
            assert all(less[key] <= greater[key] for key in less)
