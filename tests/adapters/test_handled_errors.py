"""What a caller has read is freed as soon as an error was handled: the error is in no cycle with the frames."""

import gc
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from botocore.exceptions import ClientError

from taskgov.adapters.errors import translated
from taskgov.adapters.kubernetes.request import Requests
from taskgov.collector import collector_paused
from taskgov.errors import GovernanceError


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def kubernetes() -> None:
    answer = SimpleNamespace(status=404, reason="Not Found", read=lambda: b'{"message": "not found"}')
    api: Any = SimpleNamespace(param_serialize=lambda *_, **__: (), call_api=lambda *_, **__: answer)
    Requests(api).get("/apis/kueue.x-k8s.io/v1beta2", "ask for Kueue")


def aws() -> None:
    with translated("read a document"):
        raise ClientError({"Error": {"Code": "NoSuchKey", "Message": "there is none"}}, "GetObject")


@pytest.mark.parametrize("fails", [kubernetes, aws])
@pytest.mark.usefixtures("without_collector")
def test_what_the_caller_has_read_is_freed(fails: Callable[[], None]) -> None:
    def read_on() -> ref[set[str]]:
        read = set[str]()
        with suppress(GovernanceError):
            fails()
        return ref(read)

    assert read_on()() is None


def test_what_was_read_is_not_searched_as_soon_as_the_collector_is_on_again() -> None:
    frozen = gc.get_freeze_count()
    gc.unfreeze()
    with collector_paused():
        read = [[number] for number in range(1000)]
    young = sum(map(len, (gc.get_objects(0), gc.get_objects(1))))
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0
    assert young < len(read)
    if frozen:
        gc.freeze()


def test_what_somebody_has_frozen_stays_frozen() -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with collector_paused():
        pass
    assert gc.get_freeze_count() >= frozen / 2
