"""Does a function of 512 MB read 50,000 workloads? Measured in a process of its own, over HTTP, page by page."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKLOADS, PAGE, MIB = 50_000, 500, 2**20
ROOT = Path(__file__).parents[2]

READ = """
import resource, sys
from datetime import UTC, datetime

from kubernetes import client

from taskgov.adapters.kubernetes import KubernetesReader
from taskgov.ports import ClusterAccess
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.snapshot.model import ClusterFacts, Snapshot


class Connections:
    def open(self, cluster):
        return client.ApiClient(client.Configuration(host=sys.argv[1]))


kueue = KubernetesReader(Connections()).kueue_objects(ClusterAccess("unused"))
read = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
stored = snapshot_to_json(Snapshot(ClusterFacts("ml", "arn"), datetime.now(UTC), kueue=kueue))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(len(kueue.workloads), read, peak, len(stored))
"""


def a_workload(number: int) -> dict[str, Any]:
    """Return a workload as Kueue stores it of a real job: with commands, environment and managed fields."""
    environment = [{"name": f"VARIABLE_{each}", "value": "x" * 60} for each in range(20)]
    container = {
        "name": "main",
        "image": "111122223333.dkr.ecr.us-east-1.amazonaws.com/train:latest",
        "command": ["torchrun", *(f"--argument-{each}=value" for each in range(20))],
        "env": environment,
        "resources": {"requests": {"cpu": "8", "memory": "64Gi", "nvidia.com/gpu": "1"}},
    }
    template = {"metadata": {"labels": {"app": "train"}}, "spec": {"containers": [container], "restartPolicy": "Never"}}
    condition = {
        "type": "QuotaReserved",
        "status": "False",
        "reason": "Pending",
        "message": "couldn't assign flavors " * 5,
    }
    return {
        "metadata": {
            "name": f"job-{number:05}",
            "namespace": "hyperpod-ns-team-a",
            "uid": f"{number:08x}-0000-4000-8000-000000000000",
            "creationTimestamp": "2026-11-20T09:00:00Z",
            "annotations": {"note": "y" * 200},
            "managedFields": [{"manager": "kueue", "fieldsV1": {f"f:field{each}": {} for each in range(30)}}],
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "1"}],
        },
        "spec": {"queueName": "lq", "priority": 70, "podSets": [{"name": "main", "count": 2, "template": template}]},
        "status": {"conditions": [{**condition, "lastTransitionTime": "2026-11-20T09:00:00Z"}]},
    }


@pytest.fixture
def server() -> Iterator[str]:
    """Serve the lists: 50,000 workloads in pages, nothing of anything else."""
    kinds = ["resourceflavors", "cohorts", "clusterqueues", "localqueues", "workloadpriorityclasses", "workloads"]
    discovery = {"kind": "APIResourceList", "resources": [{"name": kind} for kind in kinds]}

    def respond(environ: dict[str, Any], start_response: Any) -> Any:
        request = Request(environ)
        if request.path.endswith("/workloads"):
            begin = int(request.args.get("continue") or 0)
            assert int(request.args["limit"]) == PAGE
            end = min(begin + PAGE, WORKLOADS)
            more = {"continue": str(end)} if end < WORKLOADS else {}
            answer: dict[str, Any] = {"metadata": more, "items": [a_workload(number) for number in range(begin, end)]}
        elif request.path.endswith("/v1beta2"):
            answer = discovery
        else:
            answer = {"metadata": {}, "items": []}
        return Response(json.dumps(answer), content_type="application/json")(environ, start_response)

    served = make_server("127.0.0.1", 0, respond, threaded=True, request_handler=_Quiet)
    thread = threading.Thread(target=served.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{served.port}"
    served.shutdown()
    thread.join()
    served.server_close()


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


@pytest.mark.slow
def test_fifty_thousand_workloads_are_read_and_stored_within_512_mb(server: str) -> None:
    # Linux counts what the process had before it became this one; the shell between is smaller than the tests.
    command = ["/bin/sh", "-c", '"$0" "$@"; exit $?', sys.executable, "-c", READ, server]
    path = {"PYTHONPATH": str(ROOT / "layers/taskgov/python"), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=path)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr
    workloads, read, peak, stored = map(int, done.stdout.split())
    print(f"{workloads:,} workloads: {read // 1024} MiB when read, {peak // 1024} MiB with {stored // MIB} MiB of JSON")
    assert workloads == WORKLOADS
    assert peak * 1024 < 512 * MIB
