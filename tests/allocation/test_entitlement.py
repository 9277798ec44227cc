from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.entitlement import Claimant, entitlements

CPU_MEM = {"cpu": 9, "memory": 18}


def claim(team: str, weight: int, wants: int, guaranteed: int = 0) -> Claimant:
    return Claimant(team, weight, {"gpu": guaranteed}, {"gpu": wants})


def shares(capacity: int, *claims: Claimant) -> list[int]:
    return [held["gpu"] for held in entitlements(claims, {"gpu": capacity}).values()]


def test_the_worked_example_of_drf_gives_three_and_two_tasks() -> None:
    """Ghodsi et al. 2011, section 4.1: 9 CPU, 18 GB; A's tasks take 1 CPU and 4 GB, B's 3 CPU and 1 GB."""
    a = Claimant("a", 1, {}, {"cpu": 9, "memory": 36})
    b = Claimant("b", 1, {}, {"cpu": 18, "memory": 6})
    assert entitlements([a, b], CPU_MEM) == {"a": {"cpu": 3, "memory": 12}, "b": {"cpu": 6, "memory": 2}}


def test_the_guarantee_comes_first_as_far_as_it_is_wanted() -> None:
    assert shares(10, claim("a", 1, 8, guaranteed=6), claim("b", 1, 8, guaranteed=2)) == [7, 3]
    assert shares(10, claim("a", 1, 3, guaranteed=6), claim("b", 1, 9, guaranteed=2)) == [3, 7]


def test_surplus_follows_the_weights_until_somebody_has_enough() -> None:
    assert shares(9, claim("a", 2, 9), claim("b", 1, 9)) == [6, 3]
    assert shares(9, claim("a", 2, 4), claim("b", 1, 9)) == [4, 5]


def test_weight_zero_gets_what_all_others_leave_equally() -> None:
    assert shares(9, claim("a", 5, 3), claim("b", 0, 9), claim("c", 0, 9)) == [3, 3, 3]
    assert shares(9, claim("a", 5, 9), claim("b", 0, 9)) == [9, 0]


def test_guarantees_beyond_capacity_leave_nothing_to_split() -> None:
    assert shares(4, claim("a", 1, 9, guaranteed=3), claim("b", 1, 9, guaranteed=3)) == [3, 3]


def test_who_wants_nothing_is_entitled_to_nothing() -> None:
    assert shares(4, claim("a", 1, 0), claim("b", 1, 9)) == [0, 4]


def test_a_resource_that_is_not_there_stops_who_needs_it() -> None:
    a = Claimant("a", 1, {}, {"gpu": 4, "neuron": 1})
    assert entitlements([a, claim("b", 1, 9)], {"gpu": 4}) == {"a": {"gpu": 0, "neuron": 0}, "b": {"gpu": 4}}


claimants = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9), st.integers(0, 5)), min_size=1, max_size=5).map(
    lambda drawn: [claim(f"team-{n}", weight, wants, own) for n, (weight, wants, own) in enumerate(drawn)]
)


@given(claimants, st.integers(0, 40))
def test_nobody_gets_more_than_wanted_or_less_than_guaranteed(claims: list[Claimant], capacity: int) -> None:
    held = entitlements(claims, {"gpu": capacity})
    for each in claims:
        own = min(each.guaranteed["gpu"], each.wants["gpu"])
        assert own <= held[each.team]["gpu"] <= each.wants["gpu"]


@given(claimants, st.integers(0, 40))
def test_the_surplus_is_never_exceeded(claims: list[Claimant], capacity: int) -> None:
    held = sum(each["gpu"] for each in entitlements(claims, {"gpu": capacity}).values())
    own = sum(min(each.guaranteed["gpu"], each.wants["gpu"]) for each in claims)
    assert held <= max(capacity, own)
