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
