"""`examples/policies`: each document is planned on the cluster that it names, and keeps what its header claims.

Each claim is played a second time with the opposite setting, where it must fail: it is the setting that keeps it.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from taskgov.allocation.planner import plan_quotas
from taskgov.policy.parse import parse_policy
from taskgov.quantities import GPU, NEURON_DEVICE
from taskgov.scheduling import settle
from taskgov.usage.tasks import TaskState, tasks_of
from taskgov_manifests.workloads import workloads_of
from tests.allocation.world import applied, nodes, snapshot
from tests.support.lab import Lab
from tests.support.memory import NOON

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov.snapshot.model import Snapshot

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "policies"
P5, P4D, G5, G6 = "ml.p5.48xlarge", "ml.p4d.24xlarge", "ml.g5.8xlarge", "ml.g6.12xlarge"
C5, TRN1 = "ml.c5.2xlarge", "ml.trn1.32xlarge"
SLICE = "nvidia.com/mig-1g.5gb"
CLUSTERS: Mapping[str, Mapping[str, int]] = {
    "strict": {P5: 4},
    "flexible": {P5: 4},
    "shared-pool": {G5: 8},
    "single-gpus": {P5: 1},
    "mixed-instances": {P5: 3, G6: 1, C5: 2},
    "mig": {P4D: 2},
    "inference-first": {G5: 4},
    "trainium": {TRN1: 1},
}
Data = dict[str, Any]


def read(name: str) -> Data:
    found: Data = yaml.safe_load((FOLDER / f"{name}.yaml").read_text())
    return found


def governed(name: str, data: Data) -> Snapshot:
    """Return the example's cluster once its document, as `data` has it, was applied."""
    parsed = parse_policy(yaml.safe_dump(data))
    assert parsed.document is not None, parsed.violations
    machines = tuple(node for kind, count in CLUSTERS[name].items() for node in nodes(count, kind))
    empty = snapshot(parsed.document, machines)
    return applied(empty, plan_quotas(empty, mode="plan"))


class Played:
    """A cluster on which teams submit jobs, one after the other; the scheduler decides after each."""

    def __init__(self, name: str, data: Data) -> None:
        world = governed(name, data)
        self.lab = Lab()
        assert world.scheduler_config is not None
        self.lab.quotas, self.lab.scheduler = list(world.quotas), world.scheduler_config.scheduler_config
        self.submitted = 0
        self.before: set[str] = set()

    def submit(
        self, team: str, job: str, requests: Mapping[str, int], *, on: str = "", pods: int = 1, cls: str = "training"
    ) -> Played:
        self.submitted += 1
        now = NOON - timedelta(minutes=100 - self.submitted)
        pod: Data = {
            "containers": [{"name": "main", "resources": {"requests": {k: str(v) for k, v in requests.items()}}}]
        }
        if on:
            pod["nodeSelector"] = {"node.kubernetes.io/instance-type": on}
        labels = {
            "kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue",
            "kueue.x-k8s.io/priority-class": f"{cls}-priority",
        }
        spec = {"parallelism": pods, "template": {"spec": pod}}
        manifest = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": job, "labels": labels}, "spec": spec}
        (workload,) = workloads_of([manifest], replace(snapshot(), taken_at=now))
        self.lab.put({"apiVersion": "kueue.x-k8s.io/v1beta1", **workload})
        settle(self.lab.world, now)
        return self

    def states(self) -> dict[str, str]:
        return {task.job: task.state.value for task in tasks_of(self.lab.snapshot())}

    def running(self) -> set[str]:
        return {
            job for job, state in self.states().items() if state in {TaskState.RUNNING, TaskState.WAITING_FOR_NODES}
        }

    def preempted(self) -> set[str]:
        return {job for job, state in self.states().items() if state == TaskState.PREEMPTED}


@pytest.mark.parametrize("name", CLUSTERS)
def test_each_example_is_valid_without_warnings_and_its_plan_is_empty_once_applied(name: str) -> None:
    parsed = parse_policy((FOLDER / f"{name}.yaml").read_text())
    assert (parsed.violations, parsed.warnings) == ((), ())
    world = governed(name, read(name))
    plan = plan_quotas(world, mode="plan")
    assert (plan.changes, plan.findings) == ((), ())


def test_every_example_is_played_and_described() -> None:
    assert {file.stem for file in FOLDER.glob("*.yaml")} == set(CLUSTERS)
    page = (ROOT / "docs" / "choosing.md").read_text()
    for name in CLUSTERS:
        assert f"../examples/policies/{name}.yaml" in page
        lines = (FOLDER / f"{name}.yaml").read_text().splitlines()
        assert [line.split(":")[0] for line in lines[1:3]] == ["# Claim", "# Cluster"]


# The claims, each with the opposite


def with_teams(change: Callable[[Data], None]) -> Callable[[Data], None]:
    def changed(data: Data) -> None:
        for team in data["teams"]:
            change(team["quota"])

    return changed


def sharing(**config: Any) -> Callable[[Data], None]:
    return with_teams(lambda quota: quota.update(ResourceSharingConfig=config))


def two_teams_on_p5(played: Played) -> Played:
    """Research fills its quota and asks for as much again; then serving asks for its own."""
    played.submit("research", "own", {GPU: 8}, pods=2).submit("research", "more", {GPU: 8}, pods=2)
    played.before = played.running()
    return played.submit("serving", "service", {GPU: 8}, pods=2)


def strict(played: Played) -> bool:
    two_teams_on_p5(played)
    return played.running() == {"own", "service"} and not played.preempted()


def flexible(played: Played) -> bool:
    two_teams_on_p5(played)
    return played.before == {"own", "more"} and played.running() == {"own", "service"}


def shared_pool(played: Played) -> bool:
    for number in range(8):
        played.submit("students", f"s{number}", {GPU: 1})
    alone = played.running()
    for number in range(8):
        played.submit("research", f"r{number}", {GPU: 1})
    counts = {team: sum(job.startswith(team) for job in played.running()) for team in "rs"}
    return len(alone) == 6 and sum(counts.values()) == 8 and counts["r"] > counts["s"]


def single_gpus(played: Played) -> bool:
    for number in range(8):
        played.submit("ana", f"a{number}", {GPU: 1})
    borrowed = len(played.running())
    for who in ("ben", "chi", "dan"):
        played.submit(who, who, {GPU: 1})
    return borrowed == 4 and played.running() >= {"ben", "chi", "dan"}


def mixed_instances(played: Played) -> bool:
    played.submit("research", "train", {GPU: 8}, on=P5, pods=3).submit("research", "prepare", {"cpu": 8}, on=C5)
    played.submit("research", "try", {GPU: 2}, on=G6).submit("applications", "serve", {GPU: 2}, on=G6)
    return played.running() == {"train", "prepare", "try", "serve"} and not played.preempted()


def mig(played: Played) -> bool:
    for number in range(7):
        played.submit("notebooks", f"n{number}", {SLICE: 1})
    played.submit("training", "train", {GPU: 8})
    return len(played.running()) == 8


def inference_first(played: Played) -> bool:
    for number in range(3):
        played.submit("product", f"train{number}", {GPU: 1})
    played.submit("research", "study", {GPU: 1}).submit("product", "replica", {GPU: 1}, cls="inference")
    return "replica" in played.running() and "study" in played.running()


def trainium(played: Played) -> bool:
    played.submit("pretraining", "large", {NEURON_DEVICE: 12}).submit("experiments", "small", {NEURON_DEVICE: 4})
    return played.running() == {"large", "small"}


def counted_whole(data: Data) -> None:
    for team in data["teams"]:
        (row,) = team["quota"]["ComputeQuotaResources"]
        team["quota"]["ComputeQuotaResources"] = [{"InstanceType": row["InstanceType"], "Count": 1}]


def without_cpus(data: Data) -> None:
    for team in data["teams"]:
        team["quota"]["ComputeQuotaResources"] = [
            row for row in team["quota"]["ComputeQuotaResources"] if row["InstanceType"] != C5
        ]


def whole_gpus(data: Data) -> None:
    data["teams"][0]["quota"]["ComputeQuotaResources"] = [{"InstanceType": P4D, "Accelerators": 8}]


CLAIMS: Mapping[str, tuple[Callable[[Played], bool], Callable[[Data], Any]]] = {
    "strict": (strict, sharing(Strategy="LendAndBorrow", BorrowLimit=100)),
    "flexible": (flexible, sharing(Strategy="DontLend")),
    "shared-pool": (shared_pool, lambda data: data.pop("sharedPool")),
    "single-gpus": (single_gpus, counted_whole),
    "mixed-instances": (mixed_instances, without_cpus),
    "mig": (mig, whole_gpus),
    "inference-first": (inference_first, with_teams(lambda quota: quota.update(PreemptTeamTasks="Never"))),
    "trainium": (trainium, counted_whole),
}


@pytest.mark.parametrize("name", CLUSTERS)
def test_each_example_keeps_its_claim_and_the_opposite_setting_does_not(name: str) -> None:
    claim, opposite = CLAIMS[name]
    data = read(name)
    played = Played(name, data)
    assert claim(played), played.states()
    changed = read(name)
    opposite(changed)
    assert changed != data
    played = Played(name, changed)
    assert not claim(played), played.states()


def test_weights_divide_the_pool() -> None:
    changed = read("shared-pool")
    for team, weight in zip(changed["teams"], (20, 60), strict=True):
        team["quota"]["FairShareWeight"] = weight
    assert not shared_pool(Played("shared-pool", changed))
