"""What is measured on a cluster: each row does the work of one function or command on the answers in a folder."""

import contextlib
import io
import os
import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from time import monotonic, process_time
from typing import Any, Final

from benchmarks.scale.serving import REQUESTS, Cluster
from benchmarks.scale.world import ARN, EKS_ARN, NAME, Size, write_world
from taskgov.ports import ClusterAccess

Figures = dict[str, float]
Row = Callable[[Path], Figures]
"""Does the work of a row, and returns its CPU seconds (`cpuSeconds`) and counts of what was done."""

SNAPSHOT: Final = "snapshot.out"
TEAMS: Final = "teams.out"
PLAN: Final = "plan.out"


ONE_SHAPE: Final = "one-shape"
"""The folder with the world whose queues have one shape of jobs each, below that of the world."""


def prepare(folder: Path, teams: int, *, one_shape: bool = False) -> None:
    """Write the answers of a world into the folder, and what a run's first step makes of them."""
    write_world(folder, Size(teams), one_shape=one_shape)
    (folder / TEAMS).write_text(str(teams))
    (folder / SNAPSHOT).write_bytes(_stored_snapshot(Cluster.of(folder)))


def prepare_one_shape(folder: Path, teams: int) -> None:
    """Write the world whose queues have one shape of jobs each below the folder."""
    (folder / ONE_SHAPE).mkdir()
    prepare(folder / ONE_SHAPE, teams, one_shape=True)


def read_snapshot(folder: Path) -> Figures:
    """Read the cluster as a run does, and store the snapshot."""
    cluster = Cluster.of(folder)
    taken = cluster.take_snapshot()
    return measured(lambda: {"bytes": len(_stored_snapshot(cluster, taken))})


def plan_quotas(folder: Path) -> Figures:
    """Plan from the stored snapshot, with prediction, and store the plan, which the rows of its writes read."""
    from taskgov.allocation.codec import plan_from_json  # noqa: PLC0415 - each row imports what its function does
    from taskgov.contracts.steps import PlanQuotasRequest  # noqa: PLC0415
    from taskgov.services.plan_quotas import PlanQuotas  # noqa: PLC0415

    cluster = Cluster.of(folder)
    pointer = cluster.documents.put("snapshot", (folder / SNAPSHOT).read_bytes(), "application/json")
    use_case = PlanQuotas(cluster.documents)
    request = PlanQuotasRequest(snapshot=pointer, apply_mode="apply", needs_approver=False)
    stored = []

    def plan() -> Figures:
        done = use_case(request)
        stored.append(done.plan)
        return {"changes": done.change_count, "waves": done.wave_count}

    figures = measured(plan)
    body = cluster.documents.get(stored[0])
    (folder / PLAN).write_bytes(body)
    return {**figures, "planBytes": len(body), "complete": plan_from_json(body).prediction.is_complete}


def plan_one_shape(folder: Path) -> Figures:
    """Plan for the world whose queues have one shape of jobs each."""
    return plan_quotas(folder / ONE_SHAPE)


def publish_usage(folder: Path) -> Figures:
    """Publish as the schedule does: the second minute, in which a hundred workloads changed since the first one."""
    from taskgov.contracts.steps import PublishUsageRequest  # noqa: PLC0415 - as above

    cluster = Cluster.of(folder)
    publish = publishing(cluster)

    def minute() -> Figures:
        log, done = publish(PublishUsageRequest.parse({}))
        read = re.findall(r'"objectsRead": ?(\d+)', log)
        return {"published": done.published, "logBytes": len(log), "workloadsRead": sum(map(int, read))}

    minute()
    cluster.clock.at += timedelta(minutes=1)
    figures = measured(minute)
    kept = cluster.documents.stored
    return {**figures, **{f"{name}Bytes": len(kept[f"memory/{NAME}/{name}.json.gz"]) for name in ("use", "workloads")}}


def publishing(cluster: Cluster) -> Callable[[Any], tuple[str, Any]]:
    """Return what calls `publish_usage`, and returns its log and its answer; a failure that it reports is raised."""
    from taskgov.adapters.metrics import EmbeddedMetrics  # noqa: PLC0415 - as above
    from taskgov.services.keep_work import KeepWork  # noqa: PLC0415
    from taskgov.services.publish_usage import PublishUsage  # noqa: PLC0415
    from taskgov.services.series_cap import SeriesCap  # noqa: PLC0415
    from taskgov.services.tell_teams import TellTeams  # noqa: PLC0415
    from tests.support.memory import RecordingBus, RecordingFailures, RecordingNotices, RecordingTopics  # noqa: PLC0415

    os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "taskgov")
    bus, failures, meter = RecordingBus(), RecordingFailures(), EmbeddedMetrics()

    def write_pages(snapshot: Any) -> None:
        from taskgov.services.team_pages import TeamPages  # noqa: PLC0415 - a minute does not need it

        TeamPages(cluster.documents, failures).write(snapshot)

    use_case = PublishUsage(
        take_snapshot=cluster.take_snapshot(),
        backends=cluster.backends(),
        documents=cluster.documents,
        state=cluster.state,
        bus=bus,
        notices=RecordingNotices(),
        meter=meter,
        clock=cluster.clock,
        failures=failures,
        governed=lambda: lambda _name: True,
        tell_teams=TellTeams(cluster.documents, cluster.state, bus, RecordingTopics(), cluster.clock),
        follow_workloads=cluster.follow_workloads(meter),
        keep_work=KeepWork(cluster.documents, failures, timedelta(minutes=1)),
        write_pages=write_pages,
        cap=SeriesCap(cluster.documents, failures),
    )

    def publish(request: Any) -> tuple[str, Any]:
        with contextlib.redirect_stdout(io.StringIO()) as log:
            done = use_case(request)
        if failures.reported:
            raise RuntimeError(failures.reported)
        return log.getvalue(), done

    return publish


def estimate_starts(folder: Path) -> Figures:
    """Look at the queue as the schedule does, where no measurement is known: all workloads are listed."""
    cluster = Cluster.of(folder)
    return measured(lambda: estimated(cluster))


def estimate_starts_after_a_minute(folder: Path) -> Figures:
    """Look at the queue a minute after a measurement, which knows how many workloads wait or run."""
    from tests.support.memory import RecordingMeter  # noqa: PLC0415 - as above

    cluster = Cluster.of(folder)
    cluster.follow_workloads(RecordingMeter())(NAME, ClusterAccess(EKS_ARN))
    cluster.clock.at += timedelta(minutes=1)
    return measured(lambda: estimated(cluster))


def estimated(cluster: Cluster) -> Figures:
    """Estimate the starts of all jobs that wait."""
    from taskgov.contracts.steps import EstimateStartsRequest  # noqa: PLC0415 - as above
    from taskgov.services.estimate_starts import EstimateStarts  # noqa: PLC0415
    from taskgov.services.work_record import RecordedWork  # noqa: PLC0415
    from tests.support.memory import RecordingFailures  # noqa: PLC0415

    documents, failures = cluster.documents, RecordingFailures()
    use_case = EstimateStarts(cluster.read_queue(), documents, RecordedWork(documents), failures, process_time, 180)
    done = use_case(EstimateStartsRequest(cluster_arn=ARN))
    if failures.reported:
        raise RuntimeError(failures.reported)
    return {"waiting": done.waiting, "estimated": done.estimated, "futures": done.futures}


def audit_cluster(folder: Path) -> Figures:
    """Audit the cluster: read it, plan, judge, and write the report."""
    from taskgov.contracts.steps import AuditClusterRequest, AuditClusterResult  # noqa: PLC0415
    from taskgov.services.advise_quotas import AdviseQuotas  # noqa: PLC0415
    from taskgov.services.audit_cluster import AuditCluster  # noqa: PLC0415
    from tests.support.memory import RecordingFailures, RecordingMeter, RecordingNotices, RecordingTopics  # noqa: PLC0415

    cluster = Cluster.of(folder)
    use_case = AuditCluster(
        take_snapshot=cluster.take_snapshot(),
        documents=cluster.documents,
        state=cluster.state,
        notices=RecordingNotices(),
        team_topics=RecordingTopics(),
        meter=RecordingMeter(),
        advise=AdviseQuotas(cluster.documents, RecordingFailures(), monotonic),
    )

    def audit() -> Figures:
        done = use_case(AuditClusterRequest.parse({"clusterArn": ARN, "runId": "bench"}))
        if not isinstance(done, AuditClusterResult):
            raise TypeError(done)
        page, report = (len(cluster.documents.stored[kept.key]) for kept in (done.report.html, done.report.json_))
        return {"findings": done.findings, "pageBytes": page, "reportBytes": report}

    return measured(audit)


def status(folder: Path) -> Figures:
    """Run `taskgov status`."""
    return _command(folder, "status")


def explain(folder: Path) -> Figures:
    """Run `taskgov explain` for a job that waits."""
    return _command(folder, "explain", "team-1/team-1-job-49")


def what_if(folder: Path) -> Figures:
    """Run `taskgov what-if` for a fifth of the nodes of a type that are lost."""
    lost = max(int((folder / TEAMS).read_text()) // 10, 1)
    return _command(folder, "what-if", "--lose-nodes", f"{lost}xml.p5.48xlarge")


ON_A_CLUSTER: Final[dict[str, Row]] = {
    "read_snapshot": read_snapshot,
    "plan_quotas": plan_quotas,
    "plan_quotas: one shape": plan_one_shape,
    "publish_usage": publish_usage,
    "estimate_starts": estimate_starts,
    "audit_cluster": audit_cluster,
    "status": status,
    "explain": explain,
    "what-if": what_if,
}


def _stored_snapshot(cluster: Cluster, taken: Any = None) -> bytes:
    from taskgov.contracts.steps import ReadSnapshotRequest, ReadSnapshotResult  # noqa: PLC0415
    from taskgov.services.read_snapshot import ReadSnapshot  # noqa: PLC0415

    use_case = ReadSnapshot(taken or cluster.take_snapshot(), cluster.documents, cluster.state)
    request = ReadSnapshotRequest.parse({"clusterArn": ARN, "runId": "bench", "cause": None})
    done = use_case(request)
    if not isinstance(done, ReadSnapshotResult):
        raise TypeError(done)
    return cluster.documents.get(done.snapshot)


def _command(folder: Path, *arguments: str) -> Figures:
    """Run a command on the snapshot file; its yardstick is reading that file."""
    from taskgov.snapshot.codec import snapshot_from_json  # noqa: PLC0415
    from taskgov_cli.main import app  # noqa: PLC0415

    file = folder / SNAPSHOT

    def read() -> Figures:
        snapshot_from_json(file.read_bytes())
        return {}

    read()
    reading = min(measured(read)["cpuSeconds"] for _ in range(2))

    def run() -> Figures:
        with contextlib.redirect_stdout(io.StringIO()) as shown:
            app([*arguments, "--snapshot", str(file)], standalone_mode=False)
        return {"printedBytes": len(shown.getvalue())}

    return {**measured(run), "yardstickSeconds": reading}


def measured(work: Callable[[], Figures]) -> Figures:
    """Do the work, and return its CPU seconds, its requests, and what it counts."""
    REQUESTS.clear()
    began = process_time()
    counts = work()
    return {"cpuSeconds": process_time() - began, "requests": REQUESTS.total(), **counts}
