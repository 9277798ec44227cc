"""People with the rights of `docs/rbac-team.yaml` and of the stack's policies for people who look, and no others."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import boto3

from taskgov_embedded.cluster.access import rules_in
from taskgov_embedded.iam import evaluation
from tests.support.operating import G5, opened, played

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from taskgov_embedded.walkthrough.world import World

TEAM_RBAC = (Path(__file__).parents[2] / "docs" / "rbac-team.yaml").read_text()
EKS_NAME = "ml-eks"
SCIENTISTS, LEADS = "Scientists", "Leads"


@contextmanager
def team_cluster() -> Iterator[World]:
    """Two teams of two GPUs each, which lend and borrow; nothing runs yet."""
    with opened({"waitMinutes": 1}) as world:
        played(world)
        for team in ("team-a", "team-b"):
            world.stack.client("sagemaker").create_compute_quota(
                Name=f"{team}-quota",
                ClusterArn=world.cluster_arn,
                ComputeQuotaTarget={"TeamName": team, "FairShareWeight": 10},
                ComputeQuotaConfig={
                    "ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}],
                    "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
                },
                ActivationState="Enabled",
            )
        world.stack.run_until_quiet(120)
        yield world


def let_in(world: World, team: str) -> None:
    """Do what `kubectl apply` does with the manifest of a team."""
    world.rights[f"taskgov-{team}"] = rules_in(TEAM_RBAC.replace("team-a", team), f"taskgov-{team}")


def role_of(world: World, role: str, policy: str) -> str:
    """Return the ARN of a role that has one policy of the stack for people, and no other right."""
    arn = f"arn:aws:iam::{world.stack.place.account}:role/{role}"
    document = world.stack.resolved(policy).properties["PolicyDocument"]
    world.stack.account.policies._by_role[arn] = evaluation.statements(arn, policy, document)
    return arn


def become(world: World, monkeypatch: pytest.MonkeyPatch, role: str, policy: str, *groups: str, **tags: str) -> str:
    """Be a session of such a role, with an access entry for these groups; return the session's ARN."""
    arn = role_of(world, role, policy)
    world.stack.eks.cluster(EKS_NAME).entries[arn] = groups
    credentials = world.stack.account.identities.assume(arn, "ana", **tags)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", credentials.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", credentials.secret_key)
    boto3.setup_default_session()
    return world.stack.account.identities.principal(credentials.access_key).arn
