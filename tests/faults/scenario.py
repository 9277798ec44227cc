"""What happens in each cell of the matrix: a governed cluster, and then much at once.

Ten nodes, three teams and a pool, beta and gamma on borrowed nodes. Then the policy document changes (a new weight in
the cluster policy, alpha and beta get less, gamma more), a node fails, and alpha takes back what others borrowed: five
writes in waves, first what gives and then what takes, and one preemption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from taskgov_embedded.walkthrough.actions import Actor
from taskgov_embedded.walkthrough.model import Job, NodeEvent, Walkthrough
from taskgov_embedded.walkthrough.world import EKS_NAME, World

if TYPE_CHECKING:
    from collections.abc import Mapping

TYPE: Final = "ml.g5.8xlarge"
NODES: Final = 10
RESYNC: Final = "ResyncAllSchedule"
OUTAGE_SECONDS: Final = 600
"""How long "forever" lasts: longer than all retries of each step at the end of a run, and than the lease of the lock;
shorter than the five tries of a queued message."""
WATCHED_SECONDS: Final = 1400
"""How long a cell is played before it is looked at for the first time: longer than a run waits for what is slow."""
QUIET_SECONDS: Final = 1800
HOUR: Final = 3600
DAY: Final = 24 * HOUR
CHANGES_PER_CALL: Final = 2
"""So that five writes take three calls, and a fault can come between them."""
MINIMUM: Final = {"alpha": 2, "beta": 2, "gamma": 2}
"""Accelerators (one for each node) below which the document allows no change of a team's quota."""
EDITOR: Final = "ana"
EDITED: Final = ("alpha", "gamma", "beta")
"""Whose quota Ana changes: the first of them that is not in the midst of another change."""


def matrix_world() -> World:
    """Return the world of the matrix, not opened yet."""
    return World(
        Walkthrough.model_validate(
            {
                "name": "fault matrix",
                "source": "the mission",
                "about": "much at once",
                "mode": "apply",
                "starts": "2026-11-20T09:00:00Z",
                "cluster": {"groups": [{"instanceType": TYPE, "count": NODES}]},
                "steps": [{"title": "much at once"}],
            }
        ),
        more={"ChangesPerCall": str(CHANGES_PER_CALL)},
    )


def prepare(world: World) -> None:
    """Bring the cluster to where the fault meets it: governed, settled, beta borrowing two nodes of alpha."""
    actor = Actor(world)
    _rehearse(world, actor)
    actor._policy(_document(70, {"alpha": 4, "beta": 3, "gamma": 2}))
    world.stack.run_until_quiet(300)
    actor._submit(_job("beta", "large", 6))
    actor._submit(_job("gamma", "large", 4))
    world.stack.run_until_quiet(300)


def _rehearse(world: World, actor: Actor) -> None:
    """Let the like of it happen once: what is imported and compiled then need not be in each cell."""
    actor._policy(_document(50, {"alpha": 3, "beta": 3, "gamma": 3}))
    actor._nodes(NodeEvent.model_validate({"happens": "fails", "count": 1}))
    world.stack.run_until_quiet(300)
    actor._nodes(NodeEvent.model_validate({"happens": "recovers", "count": 1}))
    world.stack.run_until_quiet(300)


def after_fork(world: World) -> None:
    """Serve the cluster's API again: threads do not come along into a forked process, which ends without a stop."""
    world.stack.eks.register_cluster(EKS_NAME, world.api_server.start(poll_seconds=DAY).url, certificate_authority="")


def disturb(world: World) -> None:
    """Let everything happen at once."""
    actor = Actor(world)
    actor._submit(_job("alpha", "urgent", 3))
    actor._policy(_document(60, {"alpha": 3, "beta": 2, "gamma": 4}))
    actor._nodes(NodeEvent.model_validate({"happens": "fails", "count": 1}))


def resync(world: World) -> None:
    """Let the next resync come."""
    world.stack.advance(HOUR, schedules=[RESYNC])
    world.stack.run_until_quiet(QUIET_SECONDS)


def let_a_day_pass(world: World) -> None:
    """Let refusals run out; of the schedules only those that are due once fire."""
    world.stack.advance(DAY, schedules=[])
    world.stack.run_until_quiet(QUIET_SECONDS)


def edit_by_hand(world: World) -> None:
    """Let Ana give one team a single node, at the version that holds now."""
    client = world.stack.client("sagemaker", person=EDITOR)
    for team in EDITED:
        found = world.quota_named(team)
        config = dict(found["ComputeQuotaConfig"])
        config["ComputeQuotaResources"] = [{"InstanceType": TYPE, "Count": 1}]
        try:
            client.update_compute_quota(
                ComputeQuotaId=found["ComputeQuotaId"],
                TargetVersion=found["ComputeQuotaVersion"],
                ComputeQuotaConfig=config,
                ComputeQuotaTarget=found["ComputeQuotaTarget"],
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConflictException":
                raise
        else:
            return


def _job(team: str, name: str, nodes: int) -> Job:
    return Job.model_validate({"team": team, "name": name, "pods": nodes, "request": {"nvidia.com/gpu": 1}})


def _document(weight: int, counts: Mapping[str, int]) -> dict[str, Any]:
    return {
        "apiVersion": "taskgov/v1",
        "cluster": {"name": "ml-cluster", "arn": "${clusterArn}"},
        "schedulerConfig": {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": weight}]},
        "teams": [_team(name, count) for name, count in counts.items()],
        "sharedPool": {"team": "shared-pool", "takes": "remainder"},
        "guardrails": {"maxDecreasePercent": 100, "maxPreemptedGpus": 100, "minimumQuota": MINIMUM},
        "capacity": {"holdUnhealthyMinutes": 0, "growAfterMinutes": 0},
        "handEdits": "keep",
    }


def _team(name: str, count: int) -> dict[str, Any]:
    return {
        "name": name,
        "quota": {
            "ComputeQuotaResources": [{"InstanceType": TYPE, "Count": count}],
            "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
        },
        "fairShareWeight": 10,
    }
