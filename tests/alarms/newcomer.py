"""An account as a newcomer makes it: the stack first, clusters that exist already, and access entries later."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from taskgov_embedded.cluster.access import PolicyRule, TokenVerifier, read_rules
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.sagemaker.cluster_port import GroupFact
from taskgov_embedded.stack import Stack
from taskgov_embedded.virtual_time.clock import VirtualClock
from taskgov_embedded.walkthrough.world import entries_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.sagemaker.clusters import HyperPodCluster

ROOT = Path(__file__).resolve().parents[2]
MINUTE, HOUR = 60, 3600


class Account:
    """Open it with `with`. `more` are parameters of the template."""

    def __init__(self, more: Mapping[str, str] | None = None) -> None:
        self.clock = VirtualClock()
        self.stack = Stack(ROOT / "template.yaml", {"PublishSchedule": "rate(5 minutes)", **(more or {})}, self.clock)
        self._closing = ExitStack()
        self.good: HyperPodCluster
        """The cluster of a test that needs one only."""

    def __enter__(self) -> Self:
        self._closing.enter_context(self.stack)
        return self

    def __exit__(self, *about: object) -> None:
        self._closing.close()

    def add_cluster(self, name: str, **about: Any) -> HyperPodCluster:
        """Add a HyperPod cluster with two nodes; nobody has an access entry yet."""
        cluster = SimulatedCluster(name, lambda: self.clock.now, pace=Pace(join=30, stop=1), at=self.clock.at)
        cluster.set_target(GroupFact("workers", "ml.g5.8xlarge", 2))
        eks_name, eks = f"{name}-eks", self.stack.eks
        verifier = TokenVerifier(
            eks_name,
            lambda: self.clock.now,
            groups_of=lambda key: eks.groups_of(eks_name, key),
            name_of=eks.username_of,
        )
        server = ClusterApiServer(cluster.store, verifier=verifier, rules=_rules_of)
        eks.register_cluster(eks_name, self._closing.enter_context(server).url, certificate_authority="", entries={})
        registered = self.stack.sagemaker.register_cluster(name, cluster, eks_cluster_name=eks_name, **about)
        self.stack.run_until_quiet()  # the nodes join
        return registered

    def give_access(self, name: str) -> None:
        """Make the access entries of `docs/deploy.md`."""
        self.stack.eks.cluster(f"{name}-eks").entries.update(entries_of(self.stack))

    def take_access(self, name: str) -> None:
        """Take them away."""
        self.stack.eks.cluster(f"{name}-eks").entries.clear()

    def alarms(self) -> set[str]:
        """Return the logical ids of the alarms that there are."""
        return {alarm.logical_id for alarm in self.stack.account.resources.of("AWS::CloudWatch::Alarm")}

    def put_document(self, cluster: HyperPodCluster) -> None:
        """Put a policy document without teams into force."""
        body = f"apiVersion: taskgov/v1\ncluster: {{name: {cluster.name}, arn: '{cluster.arn}'}}\nteams: []\n"
        bucket = self.stack.physical("GovernanceBucket")
        self.stack.client("s3").put_object(Bucket=bucket, Key=f"policies/{cluster.name}.yaml", Body=body.encode())


def _rules_of(groups: frozenset[str]) -> tuple[PolicyRule, ...]:
    return tuple(rule for group in sorted(groups) for rule in read_rules(ROOT / "docs" / "rbac.yaml", group))
