"""The API server restarts in the midst of a run's writes: the run ends applied, and nothing is written twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from kubernetes.client.rest import RESTClientObject

from taskgov_embedded.walkthrough.model import all_files, load
from taskgov_embedded.walkthrough.runner import Runner
from tests.cluster.conftest import OwnCluster
from tests.cluster.real_world import RealActor, RealWorld

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.cluster.conftest import Cluster

pytestmark = pytest.mark.cluster
AWAY_SECONDS = 1
"""On the account's clock: the state machine tries again after up to 5, 10 and 20 seconds, then gives up."""


def stop_at(world: RealWorld, own: OwnCluster, resource: str) -> tuple[list[str], Callable[..., Any]]:
    """Return a `request` of the Kubernetes client in which the server goes away before the first PATCH of `resource`.

    Beside it, the list of requests that met with no server; the server comes back a little later.
    """
    asked = RESTClientObject.request
    lost: list[str] = []
    armed = [True]

    def request(client: RESTClientObject, method: str, url: str, *more: Any, **options: Any) -> Any:
        if armed[0] and method == "PATCH" and f"/{resource}/" in url:
            armed[0] = False
            own.stop_api_server()
            world.clock.after(AWAY_SECONDS, own.start_api_server)
        try:
            return asked(client, method, url, *more, **options)
        except Exception:
            lost.append(f"{method} {url.partition('?')[0].rpartition('/')[2]}")
            raise

    return lost, request


@pytest.mark.parametrize("resource", ["cohorts", "localqueues"])
def test_a_run_in_whose_writes_the_api_server_restarts_ends_applied_and_writes_nothing_twice(
    cluster: Cluster, resource: str
) -> None:
    if not isinstance(cluster, OwnCluster):
        pytest.skip("the API server of a given cluster is not ours to stop")
    (file,) = (one for one in all_files() if one.name.startswith("25"))
    plain = load(file)
    only_first = plain.model_copy(update={"steps": plain.steps[:1]})
    with RealWorld(only_first, cluster) as world:
        lost, request = stop_at(world, cluster, resource)
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(RESTClientObject, "request", request)
            [result] = Runner(world.walkthrough, world, RealActor(world)).run()
    assert len(lost) >= 1
    assert [f"{one.what}: {one.got}" for one in result.checks if not one.passed] == []
