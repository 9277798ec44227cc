"""Writes in waves: no sum exceeds its bound, whatever the order within a wave, and what can be written once is."""

from collections.abc import Mapping
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.plan import Change, ChangeKind, Reason
from taskgov.allocation.waves import Place, Room, Write, Writes, arrange
from taskgov.hyperpod.model import ComputeQuotaConfig

FULL = {("p5", "gpu"): 4, ("g5", "gpu"): 4}


def change(name: str, **fields: Any) -> Change:
    return Change(
        index=0,
        kind=ChangeKind.UPDATE_QUOTA,
        team=name,
        resource_id=f"id-{name}",
        name=name,
        target_version=1,
        before=ComputeQuotaConfig(),
        after=ComputeQuotaConfig(),
        target_before=None,
        target_after=None,
        gpus_before=0,
        gpus_after=0,
        reason=Reason.PROMISE,
        because="",
        **fields,
    )


def write(name: str, **delta: int) -> Write:
    moves = {(place, "gpu"): move for place, move in delta.items() if move}
    return Write(change(name), moves, any(v < 0 for v in moves.values()), any(v > 0 for v in moves.values()))


def split(whole: Write) -> tuple[Write, Write]:
    low = {place: move for place, move in whole.delta.items() if move < 0}
    rest = {place: move for place, move in whole.delta.items() if move > 0}
    return Write(change(whole.name, is_low=True), low, gives=True, takes=False), Write(
        change(whole.name), rest, gives=False, takes=True
    )


def arranged(*writes: Write, sums: Mapping[Place, int] = FULL, limits: Mapping[Place, int] = FULL) -> Writes:
    return arrange((), writes, Room(sums, limits), split)


def names(writes: Writes) -> list[list[str]]:
    return [[each.name + ("-low" if each.change.is_low else "") for each in wave] for wave in writes.in_waves()]


def test_what_gives_is_one_wave_and_what_takes_the_next() -> None:
    assert names(arranged(write("c", p5=2), write("b", p5=-1), write("a", p5=-1))) == [["a", "b"], ["c"]]


def test_a_quota_that_gives_and_takes_is_written_once_where_there_is_room() -> None:
    assert names(arranged(write("a", g5=-2, p5=2), write("b", p5=-2))) == [["b"], ["a"]]


def test_a_chain_goes_link_by_link() -> None:
    first, second = write("a", g5=-2, p5=2), write("b", c5=-2, g5=2)
    limits, sums = {**FULL, ("c5", "gpu"): 2}, {("p5", "gpu"): 2, ("g5", "gpu"): 4, ("c5", "gpu"): 2}
    assert names(arranged(second, first, sums=sums, limits=limits)) == [["a"], ["b"]]


def test_where_there_is_too_much_already_only_a_raise_lacks_room() -> None:
    room = Room({("p5", "gpu"): 4}, {("p5", "gpu"): 4})
    room.raise_by(write("a", p5=1))
    moves = Write(change("b"), {("p5", "gpu"): 0, ("g5", "gpu"): 0}, gives=False, takes=False)
    assert room.fits([moves])
    assert room.lacks([write("c", p5=1)]) == {("p5", "gpu")}


def test_two_that_wait_for_each_other_are_written_twice() -> None:
    swap = write("a", g5=-4, p5=4), write("b", p5=-4, g5=4)
    assert names(arranged(*swap)) == [["a-low", "b-low"], ["a", "b"]]


def test_what_has_no_room_is_left_out_and_so_is_who_counted_on_what_it_gives() -> None:
    stuck = arranged(write("a", g5=-1, p5=5), write("b", g5=1), write("c", p5=-1))
    assert names(stuck) == [["c"]]
    assert sorted(each.name for each in stuck.left_out) == ["a", "b"]


def test_a_sum_above_its_bound_may_stay_and_does_not_rise() -> None:
    over = {("p5", "gpu"): 9, ("g5", "gpu"): 1}
    assert names(arranged(write("a", p5=-1), write("b", g5=-1, p5=1), sums=over)) == [["a"], ["b"]]


def test_declared_over_commitment_on_a_type_without_nodes_is_not_bound() -> None:
    room = Room({}, {("p5", "gpu"): 0}, ["p5"])
    assert names(arrange((), [write("a", p5=9)], room, split)) == [["a"]]


amounts = st.fixed_dictionaries({"p5": st.integers(0, 5), "g5": st.integers(0, 5), "c5": st.integers(0, 3)})


@given(st.lists(st.tuples(amounts, amounts), max_size=7), amounts)
def test_no_state_exceeds_its_bound_and_every_goal_is_reached(
    drawn: list[tuple[dict[str, int], dict[str, int]]], room: dict[str, int]
) -> None:
    moves = {f"q{n}": {t: after[t] - before[t] for t in before} for n, (before, after) in enumerate(drawn)}
    start = {t: sum(before[t] for before, _ in drawn) for t in room}
    end = {t: sum(after[t] for _, after in drawn) for t in room}
    limits = {t: max(end[t], room[t]) for t in room}
    changing = [write(name, **move) for name, move in moves.items() if any(move.values())]
    sums = {(t, "gpu"): n for t, n in start.items()}
    writes = arranged(*changing, sums=sums, limits={(t, "gpu"): n for t, n in limits.items()})
    assert not writes.left_out
    done: dict[str, list[Write]] = {}
    now = dict(start)
    for wave in writes.in_waves():
        for t in room:
            raised = sum(max(each.delta.get((t, "gpu"), 0), 0) for each in wave)
            assert now[t] + raised <= max(limits[t], start[t])
            now[t] += sum(each.delta.get((t, "gpu"), 0) for each in wave)
        for each in wave:
            done.setdefault(each.name, []).append(each)
    assert now == end
    assert done.keys() == {each.name for each in changing}
    assert all([each.change.is_low for each in path] in ([False], [True, False]) for path in done.values())
    assert all(len({each.name for each in wave}) == len(wave) for wave in writes.in_waves())


G, P = ("g5", "gpu"), ("p5", "gpu")


def test_the_last_that_is_free_is_room_for_one_and_not_for_two() -> None:
    room = Room({G: 3}, {G: 4})
    assert room.fits([write("a", g5=1)])
    assert room.lacks([write("a", g5=1), write("b", g5=1)]) == {G}
    assert Room({G: 4}, {G: 4}).lacks([write("a", g5=1)]) == {G}
    assert Room({}, {}).lacks([write("a", g5=1)]) == {G}


def test_what_others_of_a_wave_give_is_no_room_before_they_have_settled() -> None:
    room = Room({G: 4, P: 4}, {G: 4, P: 4})
    assert room.lacks([write("a", g5=-2), write("b", g5=2)]) == {G}
    assert room.lacks([write("a", g5=-2, p5=1)]) == {P}
    room.raise_by(write("a", g5=-2))
    assert not room.fits([write("b", g5=2)])
    room.after([write("a", g5=-2)])
    assert room.fits([write("b", g5=2)])
    assert not room.fits([write("b", g5=3)])


def test_above_capacity_the_bound_is_the_sum_that_stands() -> None:
    room = Room({G: 6}, {G: 4})
    assert room.lacks([write("a", g5=1)]) == {G}
    room.after([write("b", g5=-1)])
    assert room.fits([write("a", g5=1)])


def test_waves_are_allowed_where_each_fits_after_those_before_it() -> None:
    room = Room({G: 4}, {G: 4})
    given, taken = (write("a", g5=-2),), (write("b", g5=2),)
    assert room.allows([given, taken])
    assert not room.allows([taken, given])
    assert not room.fits(taken)


def test_declared_over_commitment_is_bound_by_nothing() -> None:
    room = Room({G: 4, P: 4}, {G: 4, P: 4}, ["g5"])
    assert room.lacks([write("a", g5=9, p5=1)]) == {P}
    assert room.copy().lacks([write("a", g5=9, p5=1)]) == {P}


def test_what_only_takes_is_written_once_also_where_it_waits_for_low_writes_of_others() -> None:
    plan = arranged(write("a", p5=1), write("b", p5=-3, g5=2), write("c", p5=2, g5=-2))
    assert [each.name for each in plan.gives] == ["b", "c"]
    assert sorted(each.name for each in plan.takes) == ["a", "b", "c"]
    assert plan.left_out == ()


def test_after_three_waves_of_quotas_that_give_and_take_the_next_is_written_twice() -> None:
    places = {(name, "gpu"): 1 for name in ("t0", "t1", "t2", "t3", "t4")}
    chain = [write("d", t0=1, t1=-1), write("c", t1=1, t2=-1), write("b", t2=1, t3=-1), write("a", t3=1, t4=-1)]
    plan = arranged(*chain, sums={**places, ("t0", "gpu"): 0}, limits=places)
    assert [each.name for each in plan.takes] == ["d", "c", "b", "a"]
    assert [(each.name, each.change.is_low) for each in plan.gives] == [("a", True)]
