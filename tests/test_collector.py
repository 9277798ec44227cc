"""Python's collector of cycles is paused for a while, and works again afterwards."""

import gc
from weakref import ref

import pytest

from taskgov.collector import collector_paused


def test_the_collector_is_paused_and_works_again_after_an_error() -> None:
    def fails() -> None:
        assert not gc.isenabled()
        raise ValueError("wrong")

    with pytest.raises(ValueError, match="wrong"):
        collector_paused()(fails)()
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_it_is_paused_during_each_call_of_a_function() -> None:
    enabled = collector_paused()(gc.isenabled)
    assert (enabled(), enabled(), gc.isenabled()) == (False, False, True)


def test_cycles_that_are_made_between_pauses_are_freed() -> None:
    class Node:
        pass

    made = []
    for _ in range(200):
        node = Node()
        node.others = [[node] for _ in range(1000)]  # type: ignore[attr-defined]
        made.append(ref(node))
        with collector_paused():
            _ = [[number] for number in range(1000)]
    assert sum(node() is not None for node in made) < 100
