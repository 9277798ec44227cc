"""The reader with a person's own rights is called as the automation's own: every argument of a port fits it."""

import inspect

import pytest

from taskgov.ports import HyperPodApi, QuotaStore
from taskgov_cli.own_rights import OwnHyperPod

READS = [
    (port, name)
    for port in (HyperPodApi, QuotaStore)
    for name in vars(port)
    if name in vars(OwnHyperPod) and not name.startswith("_")
]


@pytest.mark.parametrize(("port", "name"), READS, ids=[name for _, name in READS])
def test_each_read_takes_what_the_port_takes(port: type, name: str) -> None:
    asked = inspect.signature(getattr(port, name)).parameters
    assert list(inspect.signature(getattr(OwnHyperPod, name)).parameters) == list(asked)
