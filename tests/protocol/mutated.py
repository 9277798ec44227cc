"""A plugin of pytest: `pytest -p tests.protocol.mutated --condition NAME` runs tests with one condition changed."""

from contextlib import ExitStack

import pytest

from tests.protocol.mutants import mutant_of


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--condition", required=True, help="the name of the condition, as the explorer's mutants have it")


def pytest_configure(config: pytest.Config) -> None:
    stack = ExitStack()
    stack.enter_context(mutant_of(config.getoption("--condition")).in_place())
    config.add_cleanup(stack.close)
