from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.ordering import Order, Step, in_safe_order

FULL = {"p5": {"gpu": 4}, "g5": {"gpu": 4}}


def step(key: str, before: dict[str, int], after: dict[str, int]) -> Step:
    return Step(key, {t: {"gpu": n} for t, n in before.items()}, {t: {"gpu": n} for t, n in after.items()})


def test_decreases_come_first_by_name() -> None:
    steps = [step("c", {"p5": 0}, {"p5": 2}), step("b", {"p5": 2}, {"p5": 1}), step("a", {"p5": 2}, {"p5": 1})]
    assert in_safe_order(steps, {"p5": {"gpu": 4}}, FULL).keys == ("a", "b", "c")


def test_a_write_that_gives_and_takes_waits_for_room() -> None:
    takes_p5 = step("a", {"g5": 2}, {"p5": 2})
    gives_p5 = step("b", {"p5": 4}, {"p5": 2})
    assert in_safe_order([takes_p5, gives_p5], FULL, FULL).keys == ("b", "a")


def test_a_chain_of_writes_goes_link_by_link() -> None:
    first = step("a", {"g5": 2}, {"p5": 2})
    second = step("b", {"c5": 2}, {"g5": 2})
    limits = {**FULL, "c5": {"gpu": 2}}
    sums = {"p5": {"gpu": 2}, "g5": {"gpu": 4}, "c5": {"gpu": 2}}
    assert in_safe_order([second, first], sums, limits) == Order(("a", "b"))


def test_writes_that_wait_for_each_other_only_give() -> None:
    swap = [step("a", {"g5": 4}, {"p5": 4}), step("b", {"p5": 4}, {"g5": 4})]
    assert in_safe_order(swap, FULL, FULL) == Order(("a", "b"), frozenset({"a", "b"}))


def test_a_sum_above_its_limit_may_stay_but_not_rise() -> None:
    steps = [step("a", {"p5": 5}, {"p5": 4}), step("b", {"p5": 4, "g5": 1}, {"p5": 5})]
    assert in_safe_order(steps, {"p5": {"gpu": 9}, "g5": {"gpu": 1}}, FULL).keys == ("a", "b")
    assert in_safe_order(steps[1:], {"p5": {"gpu": 9}, "g5": {"gpu": 1}}, FULL).giving_only == {"b"}


amounts = st.fixed_dictionaries({"p5": st.integers(0, 5), "g5": st.integers(0, 5)})


@given(st.lists(st.tuples(amounts, amounts), max_size=6), amounts)
def test_no_prefix_of_the_order_overshoots(
    drawn: list[tuple[dict[str, int], dict[str, int]]], room: dict[str, int]
) -> None:
    steps = {f"q{n}": step(f"q{n}", before, after) for n, (before, after) in enumerate(drawn)}
    start = {t: sum(before[t] for before, _ in drawn) for t in ("p5", "g5")}
    end = {t: sum(after[t] for _, after in drawn) for t in ("p5", "g5")}
    limits = {t: {"gpu": max(end[t], room[t])} for t in start}
    order = in_safe_order(steps.values(), {t: {"gpu": n} for t, n in start.items()}, limits)
    assert sorted(order.keys) == sorted(steps)
    for key in order.keys:
        for t, delta in steps[key].delta().items():
            start[t] += min(delta["gpu"], 0) if key in order.giving_only else delta["gpu"]
        assert all(start[t] <= max(limits[t]["gpu"], sum(before[t] for before, _ in drawn)) for t in start)
