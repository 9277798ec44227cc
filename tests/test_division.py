from dataclasses import FrozenInstanceError
from fractions import Fraction
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.division import Party, divide, exact_parts


def parties(*weights: int) -> list[Party]:
    return [Party(chr(97 + n), weight) for n, weight in enumerate(weights)]


CASES = {
    "ten over three equal shares is 4, 3, 3 (KEP-12382)": (10, parties(1, 1, 1), [4, 3, 3]),
    "eleven over three equal shares serves the first two by name": (11, parties(1, 1, 1), [4, 4, 3]),
    "weights 10 and 5 split nine as 6 and 3": (9, parties(10, 5), [6, 3]),
    "what is left over goes to the strongest claims": (10, parties(45, 29, 26), [4, 3, 3]),
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
def test_units_go_to_the_strongest_claims(total: int, given_parties: list[Party], want: list[int]) -> None:
    assert list(divide(total, given_parties).values()) == want


def test_floors_beyond_the_total_are_refused_with_the_numbers() -> None:
    with pytest.raises(ValueError, match="floors of 5 exceed the 4"):
        divide(4, [Party("a", 1, floor=5)])


@pytest.mark.parametrize("party", [Party("a", -1), Party("a", 1, floor=3, ceiling=2)])
def test_a_party_that_contradicts_itself_is_refused(party: Party) -> None:
    with pytest.raises(ValueError, match=r"^a: weight"):
        divide(9, [party])


def test_a_party_does_not_change_once_it_is_made() -> None:
    party = Party("a", 1)
    with pytest.raises(FrozenInstanceError):
        party.weight = 2  # type: ignore[misc]


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


def by_the_book(total: int, members: list[Party]) -> dict[str, int]:
    """The method as Balinski and Young give it: one unit after another, to the strongest claim below its ceiling."""
    units = {each.key: each.floor for each in members}
    for weightless in (False, True):
        for _ in range(total - sum(units.values())):
            below = [
                (Fraction(-1 if weightless else -each.weight, 2 * units[each.key] + 1), each.key)
                for each in members
                if (each.weight == 0) == weightless and (each.ceiling is None or units[each.key] < each.ceiling)
            ]
            if below:
                units[min(below)[1]] += 1
    return units


@given(splits())
def test_the_division_is_the_method_of_sainte_lague(split: tuple[int, list[Party]]) -> None:
    total, members = split
    assert divide(total, members) == by_the_book(total, members)


@given(splits(), st.integers(1, 30))
def test_more_to_divide_never_takes_from_anybody(split: tuple[int, list[Party]], more: int) -> None:
    total, members = split
    less, greater = divide(total, members), divide(total + more, members)
    assert all(less[key] <= greater[key] for key in less)


def test_the_division_can_leave_the_quota_rule() -> None:
    """The price of monotony: the exact part of e is 1, and it gets 2."""
    assert divide(2, parties(1, 1, 1, 1, 4)) == {"a": 0, "b": 0, "c": 0, "d": 0, "e": 2}


def test_millions_of_units_are_divided_at_once() -> None:
    shares = divide(20_000_000, [Party(f"team-{n:03}", 1 + n * 7919 % 1000, n % 5) for n in range(300)])
    assert sum(shares.values()) == 20_000_000


@given(splits())
def test_the_exact_parts_keep_the_bounds_and_the_sum(split: tuple[int, list[Party]]) -> None:
    total, members = split
    parts = exact_parts(Fraction(total), members)
    ceilings = sum(total if each.ceiling is None else each.ceiling for each in members)
    assert sum(parts.values()) == min(total, ceilings)
    assert all(each.floor <= parts[each.key] <= (total if each.ceiling is None else each.ceiling) for each in members)
