"""Stacks of the small application in `fixtures/app`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.sagemaker.cluster_port import GroupFact, StaticCluster
from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

collect_ignore = ["fixtures"]  # handlers, not tests: --doctest-modules would import them

APP = Path(__file__).parent / "fixtures" / "app" / "template.yaml"


@pytest.fixture
def app() -> Path:
    return APP


@pytest.fixture
def stack() -> Iterator[Stack]:
    with Stack(APP) as opened:
        yield opened


@pytest.fixture
def cluster(stack: Stack) -> Any:
    port = StaticCluster([GroupFact("workers", "ml.g5.8xlarge", 4)], stack.clock.now)
    return stack.sagemaker.register_cluster("ml-cluster", port)


@pytest.fixture(scope="module")
def shared_stack() -> Iterator[Stack]:
    """One stack for a module whose tests do not get in each other's way."""
    with Stack(APP) as opened:
        yield opened
