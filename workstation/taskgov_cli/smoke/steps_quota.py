"""The steps that govern one team: a document makes its quota, changes it, needs approval, and is rolled back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
import yaml

from taskgov.backends.hyperpod_eks.sagemaker import HyperPodEks
from taskgov.bootstrap.aws import CONFIG
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.snapshot.identity import CLAIM
from taskgov_cli.smoke.model import StepError
from taskgov_cli.smoke.steps_api import delete_quotas
from taskgov_cli.smoke.steps_stack import last_words, until

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from taskgov.hyperpod.model import ComputeQuota
    from taskgov_cli.smoke.model import Sandbox, Typed

ALWAYS_ASK: Final = {"approveAbove": {"changedGpus": 0}}
INSTANCES: Final = 2
"""As many as the team has at most."""


def look(sandbox: Sandbox) -> str:
    """See that no stack has tagged the cluster, and choose the instance type of the quotas of this run."""
    backend = HyperPodEks(boto3.client("sagemaker", config=CONFIG))
    if marks := [key for key in backend.tags(sandbox.cluster_arn) if key.startswith(CLAIM)]:
        raise StepError(
            f"another stack of taskgov has tagged the cluster ({', '.join(marks)}): name one that nobody uses"
        )
    free = free_instances(backend.cluster_nodes(sandbox.cluster_arn), backend.quotas(sandbox.cluster_arn))
    fits = sorted(name for name, count in free.items() if count >= INSTANCES)
    if not fits:
        found = ", ".join(f"{count:g} {name}" for name, count in sorted(free.items())) or "none"
        raise StepError(f"it takes {INSTANCES} instances with accelerators that are in no quota; there are: {found}")
    sandbox.instance_type = fits[0]
    return f"quotas will be of {fits[0]}; {free[fits[0]]:g} of them are in no quota"


def free_instances(nodes: Iterable[Mapping[str, Any]], quotas: Iterable[ComputeQuota]) -> dict[str, int]:
    """Return how many running instances with accelerators no quota promises, by type.

    A promise of parts of an instance counts as all instances of the type.
    """
    table = InstanceTypeTable()
    counted = Counter(node["InstanceType"] for node in nodes if node["InstanceStatus"]["Status"] == "Running")
    with_accelerators = {
        name: count
        for name, count in counted.items()
        if (known := table.resources_of(name)) is not None and (known.gpu or known.neuron_device)
    }
    for quota in quotas:
        for row in quota.compute_quota_config.compute_quota_resources:
            if row.instance_type in with_accelerators:
                taken = row.count if row.count is not None else with_accelerators[row.instance_type]
                with_accelerators[row.instance_type] = max(0, with_accelerators[row.instance_type] - taken)
    return with_accelerators


def create(sandbox: Sandbox) -> str:
    """Put a document into force that promises the team of this run one instance."""
    sandbox.plans["create"] = _apply(sandbox, count=1, weight=10)
    return _require(sandbox, count=1, weight=10)


def remove_team(sandbox: Sandbox) -> None:
    """Delete the team's quota, and take away the mark that the stack set on the cluster; another's stays."""
    delete_quotas(sandbox, sandbox.team)
    if sandbox.mark:
        boto3.client("sagemaker", config=CONFIG).delete_tags(ResourceArn=sandbox.cluster_arn, TagKeys=[sandbox.mark])


def update(sandbox: Sandbox) -> str:
    """Put a document into force that gives the team another weight."""
    sandbox.plans["update"] = _apply(sandbox, count=1, weight=20)
    return _require(sandbox, count=1, weight=20)


def approval(sandbox: Sandbox) -> str:
    """Put a document into force whose change needs a person, see that it waits, and approve it."""
    plan = _apply(sandbox, count=2, weight=20, wanted="needs-approval", guardrails=ALWAYS_ASK)
    _require(sandbox, count=1, weight=20)
    typed = sandbox.taskgov("approve", plan, "--stack", sandbox.stack, "--json")
    if typed.code != 0:
        raise StepError(f"it could not be approved: {last_words(typed.output)}")

    def is_applied() -> bool:
        return any(run["outcome"] == "applied" and run.get("planId") == plan for run in _runs(sandbox))

    if not until(600, 15, is_applied):
        raise StepError(f"plan {plan} was approved, but not applied within 600 s")
    sandbox.plans["approval"] = plan
    return f"it waited, was approved, and then: {_require(sandbox, count=2, weight=20)}"


def roll_back(sandbox: Sandbox) -> str:
    """Take the approved plan back, with the stop switch on so that no run writes it again."""
    plan = sandbox.plans["approval"]
    typed = sandbox.taskgov("rollback", plan, "--stack", sandbox.stack, "--yes", "--stop", "--json")
    if typed.code != 0 or typed.data is None:
        raise StepError(f"exit code {typed.code}: {last_words(typed.output)}")
    if typed.data["error"] is not None:
        raise StepError(str(typed.data["error"]))
    return _require(sandbox, count=1, weight=20)


def _apply(
    sandbox: Sandbox, *, count: int, weight: int, wanted: str = "applied", guardrails: dict[str, Any] | None = None
) -> str:
    """Put the document into force; return the plan of its run. Raises StepError for another outcome."""
    quota = {
        "ComputeQuotaResources": [{"InstanceType": sandbox.instance_type, "Count": count}],
        "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50},
    }
    document = {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": sandbox.cluster, "arn": sandbox.cluster_arn},
        "teams": [{"name": sandbox.team, "quota": quota, "fairShareWeight": weight}],
        "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
        **({"guardrails": guardrails} if guardrails else {}),
    }
    file = Path(sandbox.folder) / "policy.yaml"
    file.write_text(yaml.safe_dump(document, sort_keys=False))
    typed = sandbox.taskgov("apply", "--policy", str(file), "--stack", sandbox.stack, "--yes", "--json")
    ended = _ended(typed)
    if ended.get("outcome") != wanted:
        raise StepError(f"the run ended {ended.get('outcome')}: {ended.get('error') or last_words(typed.output)}")
    return str(ended["planId"])


def _ended(typed: Typed) -> dict[str, Any]:
    found = typed.data["ended"] if isinstance(typed.data, dict) else None
    if found is None:
        raise StepError(f"exit code {typed.code}: {last_words(typed.output)}")
    return dict(found)


def _runs(sandbox: Sandbox) -> list[dict[str, Any]]:
    return list(sandbox.taskgov("history", sandbox.cluster, "--stack", sandbox.stack, "--json").data or ())


def _require(sandbox: Sandbox, *, count: int, weight: int) -> str:
    """Return what the team's quota holds in a sentence. Raises StepError where it is not this."""
    client = boto3.client("sagemaker", config=CONFIG)
    pages = client.get_paginator("list_compute_quotas").paginate(ClusterArn=sandbox.cluster_arn)
    quotas: list[Any] = [quota for page in pages for quota in page["ComputeQuotaSummaries"]]
    mine = [quota for quota in quotas if quota["ComputeQuotaTarget"]["TeamName"] == sandbox.team]
    if len(mine) != 1:
        raise StepError(f"team {sandbox.team} has {len(mine)} quotas")
    found = client.describe_compute_quota(ComputeQuotaId=mine[0]["ComputeQuotaId"])
    rows = found["ComputeQuotaConfig"]["ComputeQuotaResources"]
    held = [(row["InstanceType"], row.get("Count")) for row in rows]
    own_weight = found["ComputeQuotaTarget"].get("FairShareWeight")
    sentence = f"the quota has {held[0][1] if held else 0} {sandbox.instance_type}, weight {own_weight}"
    if held != [(sandbox.instance_type, count)] or own_weight != weight:
        raise StepError(f"{sentence}, and not {count}, weight {weight}")
    return f"{sentence}, at version {found['ComputeQuotaVersion']}"
