"""What a person's rights wrap is asked as the port is: the cast hides a difference from mypy."""

import inspect

import pytest

from taskgov.ports import HyperPodApi
from taskgov_cli.own_rights import OwnHyperPod

METHODS = [name for name, _ in inspect.getmembers(OwnHyperPod, inspect.isfunction) if not name.startswith("_")]


@pytest.mark.parametrize("name", METHODS)
def test_a_method_takes_what_the_port_s_takes(name: str) -> None:
    def taken(one: type) -> list[tuple[str, bool]]:
        parameters = inspect.signature(getattr(one, name)).parameters.values()
        return [(each.name, each.default is inspect.Parameter.empty) for each in parameters]

    assert taken(OwnHyperPod) == taken(HyperPodApi)
