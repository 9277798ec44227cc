"""Do many things from one prepared state: each in a process of its own, forked from this one.

Opening a stack takes seconds, forking one milliseconds; and what a cell breaks is gone with its process.
"""

from __future__ import annotations

import gc
import os
import pickle
import sys
import traceback
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

_T = TypeVar("_T")


class ChildFailedError(Exception):
    """The work in a child raised; the text is its traceback."""


def in_child(work: Callable[[], _T]) -> _T:
    """Do `work` in a forked process and return its (picklable) answer. Raises ChildFailedError with its traceback."""
    return finish(start(work))


def in_children(works: Iterable[Callable[[], _T]], jobs: int) -> Iterator[_T]:
    """Do works in forked processes, `jobs` at a time; give the answers in the order of the works. Raises like one."""
    with _kept_from_collection():
        yield from _in_children(works, jobs)


@contextmanager
def _kept_from_collection() -> Iterator[None]:
    """Let no child look through what it has from here for garbage: that is slow, and copies its pages."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _in_children(works: Iterable[Callable[[], _T]], jobs: int) -> Iterator[_T]:
    running: list[tuple[int, Child[_T]]] = []
    done: dict[int, _T] = {}
    given = 0
    for place, work in enumerate(works):
        if len(running) >= jobs:
            _collect(running, done)
        running.append((place, start(work)))
        while given in done:
            yield done.pop(given)
            given += 1
    while running:
        _collect(running, done)
    yield from (done[place] for place in sorted(done))


def _collect(running: list[tuple[int, Child[_T]]], done: dict[int, _T]) -> None:
    """Wait for the first child that answers, so that a long one delays no other."""
    answered = wait([child.reader for _, child in running])
    for answering in [answering for answering in running if answering[1].reader in answered]:
        running.remove(answering)
        place, child = answering
        done[place] = finish(child)


@dataclass(frozen=True, slots=True)
class Child(Generic[_T]):
    """A process at work, and the end of the pipe on which its answer comes."""

    pid: int
    reader: int


def start(work: Callable[[], _T]) -> Child[_T]:
    """Fork a process that does `work`, for `finish` to wait for."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # The other threads are idle (an HTTP server that waits): nobody holds a lock that the child would need.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        os.close(reader)
        _answer(work, writer)
    os.close(writer)
    return Child(pid, reader)


def finish(child: Child[_T]) -> _T:
    """Wait for a process that `start` made and return its (picklable) answer. Raises ChildFailedError."""
    with os.fdopen(child.reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child.pid, 0)
    if not answer:
        raise ChildFailedError(f"process {child.pid} ended without an answer")
    value: _T
    # It is our own child that wrote it.
    value, failure = pickle.loads(answer)  # noqa: S301  # nosec B301
    if failure:
        raise ChildFailedError(failure)
    return value


def _answer(work: Callable[[], object], writer: int) -> None:
    """Write what `work` returns, and end: nothing of the parent (tests, exit handlers) goes on in the child.

    It ends so soon that collecting garbage costs more (6 % of its time) than it frees.
    """
    gc.disable()
    try:
        answer = pickle.dumps((work(), ""))
    except BaseException:  # noqa: BLE001 whatever it is, the parent is to hear of it
        answer = pickle.dumps((None, traceback.format_exc()))
    try:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(answer)
    finally:
        os._exit(0)
