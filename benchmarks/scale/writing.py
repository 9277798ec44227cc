"""What is measured of a plan that is written: one call of each step, in a new process, which reads the plan."""

from datetime import timedelta
from pathlib import Path
from typing import Final

import orjson

from benchmarks.scale.rows import PLAN, Figures, Row, measured, publishing
from benchmarks.scale.serving import Cluster
from benchmarks.scale.world import ARN, NAME
from taskgov.contracts.steps import Pointer

PER_CALL: Final = 25
"""The template's default of `ChangesPerCall`."""
AFTER: Final = "after"
LOCK: Final = ("bench", 1, float("inf"))


def apply_change(folder: Path) -> Figures:
    """Write the first changes of the plan."""
    from taskgov.contracts.steps import ApplyChangeRequest  # noqa: PLC0415 - each row imports what its function does
    from taskgov.services.apply_change import ApplyChange, ApplyChanges  # noqa: PLC0415
    from taskgov.services.claim_cluster import ClaimCluster  # noqa: PLC0415
    from taskgov.services.step_inputs import LastPlan  # noqa: PLC0415
    from taskgov.snapshot.identity import StateStamp  # noqa: PLC0415
    from tests.support.memory import InMemoryHyperPod, InMemoryTags  # noqa: PLC0415

    cluster, plan = _with_plan(folder)
    quotas = {quota.compute_quota_id: quota for quota in cluster.backends().quotas(ARN)}
    cluster.state.remember_resources(ARN, quotas)
    cluster.state.record_stamp(ARN, StateStamp("own", 1, cluster.clock.at))
    write = ApplyChange(InMemoryHyperPod(stored=quotas), cluster.documents, cluster.state, cluster.clock, LastPlan())
    use_case = ApplyChanges(write, ClaimCluster(InMemoryTags(), cluster.state, cluster.clock))
    owner, token, _ = LOCK
    request = ApplyChangeRequest(
        cluster_arn=ARN, plan=plan, index=0, count=PER_CALL, lock_owner=owner, fencing_token=token
    )
    return measured(lambda: {"written": use_case(request).written})


def verify_plan(folder: Path) -> Figures:
    """See that everything has settled that the plan writes: every quota is listed as it wants it, with its record."""
    from taskgov.allocation.codec import plan_from_json  # noqa: PLC0415
    from taskgov.contracts.steps import VerifyPlanRequest  # noqa: PLC0415
    from taskgov.services.step_inputs import LastPlan  # noqa: PLC0415
    from taskgov.services.verify_plan import VerifyPlan  # noqa: PLC0415
    from taskgov.snapshot.records import AppliedQuota  # noqa: PLC0415

    _write_after(folder)
    cluster, pointer = _with_plan(folder, AFTER)
    at = cluster.clock.at - timedelta(minutes=1)
    plan_id = plan_from_json((folder / PLAN).read_bytes()).plan_id
    for quota in cluster.backends().quotas(ARN):
        config, target = quota.compute_quota_config, quota.compute_quota_target
        record = AppliedQuota(quota.compute_quota_id, quota.compute_quota_version, config, target, plan_id, at)
        cluster.state.record_applied(ARN, record)
    use_case = VerifyPlan(cluster.backends(), cluster.documents, cluster.state, cluster.clock, LastPlan())
    request = VerifyPlanRequest(cluster_arn=ARN, plan=pointer)
    return measured(lambda: {"settled": use_case(request).settled})


def end_of_run(folder: Path) -> Figures:
    """Publish the end of a run that wrote the plan: read the cluster, measure it, and write the page of each team."""
    from taskgov.allocation.codec import plan_from_json  # noqa: PLC0415
    from taskgov.audit.team_page import KEY  # noqa: PLC0415
    from taskgov.contracts.steps import PublishUsageRequest  # noqa: PLC0415

    cluster, pointer = _with_plan(folder)
    changes = range(len(plan_from_json((folder / PLAN).read_bytes()).changes))
    request = PublishUsageRequest.parse(
        {
            "clusterArn": ARN,
            "runId": "bench",
            "outcome": "applied",
            "plan": pointer.to_json(),
            "begun": [pointer.to_json()],
            "wrote": [{"plan": 0, "changes": [*changes]}],
            "applied": len(changes),
            "startedAt": (cluster.clock.at - timedelta(minutes=10)).isoformat(),
        }
    )
    publish = publishing(cluster)
    folder_of_pages = KEY.format(cluster=NAME, team="").removesuffix(".html")

    def end() -> Figures:
        log, done = publish(request)
        pages = sum(key.startswith(folder_of_pages) for key in cluster.documents.stored)
        return {"published": done.published, "logBytes": len(log), "pages": pages}

    return measured(end)


ROWS: Final[dict[str, Row]] = {"apply_change": apply_change, "verify_plan": verify_plan, "end_of_run": end_of_run}


def _with_plan(folder: Path, part: str = "") -> tuple[Cluster, Pointer]:
    """Return the cluster under the lock of a run, and the plan that `plan_quotas` has put into the folder."""
    cluster = Cluster.of(folder / part)
    cluster.state.lock[ARN] = LOCK
    return cluster, cluster.documents.put("plans/bench.json", (folder / PLAN).read_bytes(), "application/json")


def _write_after(folder: Path) -> None:
    """Write the answers about quotas as they are once the plan has been written."""
    from taskgov.allocation.codec import plan_from_json  # noqa: PLC0415

    wanted = {change.name: change for change in plan_from_json((folder / PLAN).read_bytes()).changes}
    after = folder / AFTER
    after.mkdir()
    for name in ("policy.yaml", "ListClusters-0.json", "DescribeCluster-0.json"):
        (after / name).symlink_to(folder / name)
    for page in folder.glob("ListComputeQuotas-*.json"):
        answer = orjson.loads(page.read_bytes())
        for quota in answer["ComputeQuotaSummaries"]:
            after_it = wanted[quota["Name"]].after
            if after_it is not None:  # every quota changes, and none is deleted
                quota["ComputeQuotaConfig"] = after_it.to_api()
            quota["ComputeQuotaVersion"] += 1
        (after / page.name).write_bytes(orjson.dumps(answer))
