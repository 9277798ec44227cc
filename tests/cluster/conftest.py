"""A real API server with the real Kueue, once for all tests here; skipped with a reason where there is none."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.cluster.binaries import binaries
from tests.cluster.control_plane import ControlPlane
from tests.cluster.differential.report import CLOSING_LINES
from tests.cluster.kube import Kube

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.kube import Object

GIVEN = "TASKGOV_TEST_KUBECONFIG"


class Cluster(Protocol):
    """What tests need of the cluster, be it ours or given."""

    kube: Kube

    def run_kueue(self, governance: Object) -> None:
        """Let Kueue run with this configuration, or skip when it cannot be changed."""

    def kubeconfig(self, user: str, group: str) -> Path:
        """Return a kubeconfig for a user of a group, or skip when none can be made."""

    @property
    def kueue_log(self) -> Path | None:
        """The log of Kueue's manager, `None` when it cannot be read."""

    def serve_old_versions(self, *, served: bool) -> None:
        """Serve Kueue's kinds in all versions, or only in those in which they are stored."""

    def stop_api_server(self) -> None:
        """Stop the API server, or skip when it is not ours."""

    def start_api_server(self) -> None:
        """Start it again, with the same address and data."""


class OwnCluster:
    """The control plane that this session started."""

    def __init__(self, plane: ControlPlane, kube: Kube) -> None:
        self.plane = plane
        self.kube = kube

    def run_kueue(self, governance: Object) -> None:
        self.plane.run_kueue(self.kube, governance)

    @property
    def runs_kueue(self) -> bool:
        """Say whether Kueue's manager runs, with whatever configuration."""
        return self.plane.runs_kueue

    def kubeconfig(self, user: str, group: str) -> Path:
        return self.plane.kubeconfig(user, group)

    @property
    def kueue_log(self) -> Path | None:
        return self.plane.kueue_log

    def serve_old_versions(self, *, served: bool) -> None:
        self.plane.serve_old_versions(self.kube, served=served)

    def stop_api_server(self) -> None:
        self.plane.stop_api_server()

    def start_api_server(self) -> None:
        self.plane.start_api_server()


class GivenCluster:
    """A cluster that somebody gave, with Kueue installed and configured by them."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kube = Kube(kubeconfig)

    def run_kueue(self, governance: Object) -> None:
        if "fairSharing" not in governance:
            pytest.skip("the given cluster's Kueue is taken to run with fair sharing")
        if "waitForPodsReady" in governance:
            pytest.skip("the given cluster's Kueue is taken to run without waitForPodsReady")

    def kubeconfig(self, user: str, group: str) -> Path:
        pytest.skip(f"no certificate can be made for {user} of {group} on a given cluster")

    @property
    def kueue_log(self) -> Path | None:
        return None

    def serve_old_versions(self, *, served: bool) -> None:
        """A given cluster stays as it is."""

    def stop_api_server(self) -> None:
        pytest.skip("the API server of a given cluster is not ours to stop")

    def start_api_server(self) -> None:
        raise AssertionError("it was never stopped")


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Give the cluster; what was started for it is stopped at the end."""
    if given := os.environ.get(GIVEN):
        given_cluster = GivenCluster(Path(given))
        with closing(given_cluster.kube):
            yield given_cluster
        return
    plane = ControlPlane(binaries(), tmp_path_factory.mktemp("control-plane"))
    try:
        with closing(plane.start()) as kube:
            yield OwnCluster(plane, kube)
    finally:
        plane.stop()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Close with a table: what was shown on the cluster, how it came out, and how long it took."""
    outcomes = {"passed": "ok", "failed": "FAILED", "error": "FAILED", "skipped": "skipped"}
    rows = [
        (report.nodeid.rpartition("/")[2], shown, report.duration)
        for outcome, shown in outcomes.items()
        for report in terminalreporter.stats.get(outcome, [])
        if "tests/cluster/" in report.nodeid and (report.when == "call" or outcome != "passed")
    ]
    if not any(shown != "skipped" for _, shown, _ in rows):
        return
    terminalreporter.section("on the real cluster")
    for name, shown, seconds in sorted(rows):
        terminalreporter.write_line(f"{shown:8}{seconds:7.1f} s  {sentence(name)}")
    failed = sum(shown == "FAILED" for _, shown, _ in rows)
    skipped = sum(shown == "skipped" for _, shown, _ in rows)
    terminalreporter.write_line(f"{len(rows) - failed - skipped} scenarios ok, {failed} failed, {skipped} skipped")
    for report in (report for outcome in outcomes for report in terminalreporter.stats.get(outcome, [])):
        for line in dict(report.user_properties).get(CLOSING_LINES, ()):
            terminalreporter.write_line(line)


def sentence(nodeid: str) -> str:
    """Return a test's name as a sentence, after the file it is in.

    >>> sentence("test_access.py::test_no_right_is_missing[x]")
    'access: no right is missing [x]'
    """
    file, _, test = nodeid.partition("::")
    name, bracket, case = test.rpartition("::")[2].partition("[")
    said = name.removeprefix("test_").replace("_", " ")
    place = file.removeprefix("test_").removesuffix(".py").replace("_", " ")
    return f"{place}: {said}{f' {bracket}{case}' if bracket else ''}"
