from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.settle import resolve_shares
from taskgov.allocation.shares import Party, divide
from taskgov.policy.document import Share
from tests.allocation.world import G5


def parties(*weights: int) -> list[Party]:
    return [Party(chr(97 + n), weight) for n, weight in enumerate(weights)]


CASES = {
    "ten over three equal shares is 4, 3, 3 (KEP-12382)": (10, parties(1, 1, 1), [4, 3, 3]),
    "eleven over three equal shares serves the first two by name": (11, parties(1, 1, 1), [4, 4, 3]),
    "weights 10 and 5 split nine as 6 and 3": (9, parties(10, 5), [6, 3]),
    "the largest remainder gets what is left over": (10, parties(45, 29, 26), [4, 3, 3]),
    "nothing to divide gives everybody nothing": (0, parties(3, 2), [0, 0]),
    "weights that are all zero count as equal": (4, parties(0, 0), [2, 2]),
    "a zero weight beside others gets nothing": (4, parties(1, 0), [4, 0]),
    "a zero weight gets what ceilings leave": (5, [Party("a", 1, ceiling=2), Party("b", 0)], [2, 3]),
    "a floor is kept and the others pay for it": (10, [Party("a", 1, floor=5), Party("b", 9)], [5, 5]),
    "a ceiling is kept and the others gain": (10, [Party("a", 9, ceiling=2), Party("b", 1)], [2, 8]),
    "ceilings that leave something undivided leave it": (
        10,
        [Party("a", 1, ceiling=2), Party("b", 1, ceiling=3)],
        [2, 3],
    ),
    "a floor that breaks only after a ceiling was kept is kept too": (
        12,
        [Party("a", 50, ceiling=3), Party("b", 25), Party("c", 25, floor=6)],
        [3, 3, 6],
    ),
}


@pytest.mark.parametrize(("total", "given_parties", "want"), CASES.values(), ids=CASES.keys())
def test_the_largest_remainder_divides(total: int, given_parties: list[Party], want: list[int]) -> None:
    assert list(divide(total, given_parties).values()) == want


def test_floors_beyond_the_total_are_refused_with_the_numbers() -> None:
    with pytest.raises(ValueError, match="floors of 5 exceed the 4"):
        divide(4, [Party("a", 1, floor=5)])


@pytest.mark.parametrize("party", [Party("a", -1), Party("a", 1, floor=3, ceiling=2)])
def test_a_party_that_contradicts_itself_is_refused(party: Party) -> None:
    with pytest.raises(ValueError, match=r"^a: weight"):
        divide(9, [party])


@st.composite
def splits(draw: st.DrawFn) -> tuple[int, list[Party]]:
    drawn = draw(
        st.lists(
            st.tuples(st.integers(0, 100), st.integers(0, 6), st.none() | st.integers(0, 9)), min_size=1, max_size=7
        )
    )
    members = [
        Party(f"team-{n}", weight, floor, None if room is None else floor + room)
        for n, (weight, floor, room) in enumerate(drawn)
    ]
    return draw(st.integers(sum(each.floor for each in members), 60)), members


@given(splits())
def test_the_sum_is_the_total_or_all_ceilings(split: tuple[int, list[Party]]) -> None:
    total, members = split
    ceilings = sum(total if each.ceiling is None else each.ceiling for each in members)
    assert sum(divide(total, members).values()) == min(total, ceilings)


@given(splits())
def test_no_bound_is_broken(split: tuple[int, list[Party]]) -> None:
    total, members = split
    shares = divide(total, members)
    assert all(each.floor <= shares[each.key] <= (each.ceiling or total) for each in members if each.ceiling != 0)


@given(splits())
def test_the_order_of_the_parties_does_not_matter(split: tuple[int, list[Party]]) -> None:
    total, members = split
    want = divide(total, members)
    assert all(divide(total, order) == want for order in list(permutations(members[:4]))[:6] if len(members) <= 4)
    assert divide(total, reversed(members)) == want


@given(st.integers(0, 60), st.lists(st.integers(0, 50), min_size=2, max_size=6))
def test_a_greater_weight_never_gets_less(total: int, weights: list[int]) -> None:
    shares = divide(total, parties(*weights))
    ranked = sorted(parties(*weights), key=lambda each: each.weight)
    amounts = [shares[each.key] for each in ranked]
    pairs = zip(ranked, ranked[1:], amounts, amounts[1:], strict=False)
    assert all(less <= more for one, other, less, more in pairs if one.weight < other.weight)


@given(st.integers(0, 60), st.lists(st.integers(1, 50), min_size=2, max_size=5), st.integers(1, 50))
def test_raising_a_weight_never_takes_from_its_team(total: int, weights: list[int], more: int) -> None:
    before = divide(total, parties(*weights))["a"]
    assert divide(total, parties(weights[0] + more, *weights[1:]))["a"] >= before


@given(st.integers(0, 200), st.lists(st.integers(1, 50), min_size=1, max_size=6))
def test_everybody_is_within_one_of_the_exact_part(total: int, weights: list[int]) -> None:
    shares = divide(total, parties(*weights))
    exact = {each.key: Fraction(total * each.weight, sum(weights)) for each in parties(*weights)}
    assert all(abs(shares[key] - exact[key]) < 1 for key in shares)


def shares_of(*percents: float, **bounds: dict[str, int]) -> dict[str, Share]:
    named = {f"team-{chr(97 + n)}": percent for n, percent in enumerate(percents)}
    return {
        team: Share(instance_type=G5, percent=percent, **bounds.get(team[-1], {})) for team, percent in named.items()
    }


SHARES = {
    "three thirds written as 33.33 divide everything": (shares_of(33.33, 33.33, 33.33), 10, [4, 3, 3]),
    "half of five is two, the rest is the pool's": (shares_of(50), 5, [2]),
    "two halves of five divide all five": (shares_of(50, 50), 5, [3, 2]),
    "a floor is lifted from the rest, not from the other shares": (shares_of(10, 50, a={"floor": 5}), 10, [5, 5]),
    "a ceiling leaves its part to the other shares": (shares_of(50, 50, a={"ceiling": 2}), 10, [2, 8]),
    "shares of nothing are nothing": (shares_of(60, 40), 0, [0, 0]),
    "floors of nothing are still asked for": (shares_of(60, 40, b={"floor": 1}), 0, [0, 1]),
}


@pytest.mark.parametrize(("shares", "usable", "want"), SHARES.values(), ids=SHARES.keys())
def test_shares_of_capacity_come_to_whole_instances(shares: dict[str, Share], usable: int, want: list[int]) -> None:
    assert list(resolve_shares(shares, usable).values()) == want
