from random import Random

from hypothesis import given
from hypothesis import strategies as st

from taskgov.usage.entitlement import Claimant, entitlements

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


def test_who_needs_other_resources_takes_nothing_away() -> None:
    """Nobody wants memory: what nobody grows in limits nobody."""
    a, b = Claimant("a", 1, {}, {"gpu": 9}), Claimant("b", 1, {}, {"cpu": 9})
    held = entitlements([a, b], {"gpu": 4, "cpu": 8, "memory": 16})
    assert held == {"a": {"gpu": 4}, "b": {"cpu": 8}}


def test_who_has_enough_leaves_the_rest_to_those_who_continue_until_they_have_enough() -> None:
    assert shares(20, claim("a", 2, 4), claim("b", 1, 9), claim("c", 0, 9)) == [4, 9, 7]
    assert shares(30, claim("a", 3, 2), claim("b", 2, 6), claim("c", 1, 12)) == [2, 6, 12]


def test_the_last_unit_is_given_too() -> None:
    assert shares(1, claim("a", 1, 1)) == [1]
    assert shares(4, claim("a", 1, 4, guaranteed=3)) == [4]


def test_equals_get_the_same_and_what_does_not_divide_stays() -> None:
    assert shares(10, claim("a", 1, 9), claim("b", 1, 9), claim("c", 1, 9)) == [3, 3, 3]
    assert shares(5, claim("a", 0, 9), claim("b", 0, 9)) == [2, 2]


def test_a_used_up_resource_stops_only_who_needs_it() -> None:
    """All grow alike until the 4 GPUs are gone: A and B stop at a half, and C goes on with the Neuron devices."""
    a = Claimant("a", 1, {}, {"gpu": 4, "neuron": 4})
    b, c = Claimant("b", 1, {}, {"gpu": 4}), Claimant("c", 1, {}, {"neuron": 8})
    want = {"a": {"gpu": 2, "neuron": 2}, "b": {"gpu": 2}, "c": {"neuron": 6}}
    assert entitlements([a, b, c], {"gpu": 4, "neuron": 8}) == want


def test_weights_count_for_the_dominant_share_of_each() -> None:
    """B grows in memory twice as fast as A in CPUs; when the memory is gone, A has half of what it wants."""
    a = Claimant("a", 1, {}, {"cpu": 16, "memory": 2})
    b = Claimant("b", 2, {}, {"cpu": 2, "memory": 16})
    assert entitlements([a, b], {"cpu": 17, "memory": 17}) == {
        "a": {"cpu": 8, "memory": 1},
        "b": {"cpu": 2, "memory": 16},
    }


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


@given(claimants, st.integers(0, 40), st.randoms(use_true_random=False))
def test_the_order_of_teams_does_not_matter(claims: list[Claimant], capacity: int, chance: Random) -> None:
    mixed = list(claims)
    chance.shuffle(mixed)
    assert entitlements(mixed, {"gpu": capacity}) == entitlements(claims, {"gpu": capacity})


@given(claimants, st.integers(0, 40))
def test_less_than_one_unit_a_team_stays_when_somebody_wants_more(claims: list[Claimant], capacity: int) -> None:
    held = entitlements(claims, {"gpu": capacity})
    left = capacity - sum(each["gpu"] for each in held.values())
    if any(held[each.team]["gpu"] < each.wants["gpu"] for each in claims):
        assert left < len(claims)
