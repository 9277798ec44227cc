"""Build the account that `taskgov local` serves: one cluster with two teams, and what the samples in `events/` name.

Or a bare one, as the workshops of task governance begin: nodes, no add-on, no quotas. It is prepared on a virtual clock
(nodes join, quotas settle, a first run plans), then its clock goes live.
"""

from __future__ import annotations

import base64
import json
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, Self

from taskgov import keys
from taskgov.errors import InvalidRequestError
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ClusterSchedulerConfig, ComputeQuota
from taskgov_embedded.cluster.access import READERS, TokenVerifier, read_rules
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.deployable import EVENTS, RBAC, TEMPLATE
from taskgov_embedded.eks import TASK_GOVERNANCE_ADDON, AddOnState
from taskgov_embedded.sagemaker.cluster_port import GroupFact
from taskgov_embedded.server.certificate import write_certificate
from taskgov_embedded.server.live_clock import LiveClock
from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Sequence

    from taskgov_embedded.cluster.access import PolicyRule
    from taskgov_embedded.cluster.api_server import RulesOf
    from taskgov_embedded.iam.identity import Credentials

DOCUMENTS = EVENTS / "local"
CLUSTER_NAME, CLUSTER_ID, EKS_NAME = "ml-cluster", "abcdefghijkl", "ml-eks"
WORKERS = GroupFact("gpu-workers", "ml.g5.8xlarge", 4)
QUOTAS = {"team-a": 1, "team-b": 2}
"""Instances that each team has before the first plan; `events/local/policy.yaml` has it the other way round."""
MOST_WORKERS = 100
PEOPLE = ("ana", "ben")
"""Users with keys: one puts documents into force, the other approves."""
TRAIL, TRAIL_BUCKET = "management-events", "trail"
PREPARED_IN = timedelta(minutes=15)


class LocalAccount:
    """Open it with `with`; the account is then alive, and `stack` should be served.

    The cluster's API listens at `address`, which functions in containers must reach. With `bare` the cluster has these
    workers and nothing else. `mode` is the stack's `ApplyMode`.
    """

    eks_name = EKS_NAME

    def __init__(
        self,
        address: str = "127.0.0.1",
        kubernetes_port: int = 0,
        *,
        bare: GroupFact | None = None,
        mode: Literal["plan", "apply"] = "plan",
    ) -> None:
        self._bare = bare
        self.clock = LiveClock(datetime.now(UTC) - PREPARED_IN)
        self.stack = Stack(TEMPLATE, {"ApplyMode": mode, "ClustersWithoutDocument": "*"}, self.clock)
        self.cluster = SimulatedCluster(
            CLUSTER_NAME, lambda: self.clock.now, pace=Pace(join=30), at=self.clock.at, add_on=bare is None
        )
        self.people = PEOPLE
        self._address = (address, kubernetes_port)
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            directory = Path(undo.enter_context(TemporaryDirectory()))
            certificate, key = write_certificate(directory, self._address[0], datetime.now(UTC))
            undo.enter_context(self.stack)
            self._kubernetes = undo.enter_context(self._api_server(certificate, key))
            self._register(certificate)
            self._seed()
            self.clock.go_live()
            self._closing = undo.pop_all()
        return self

    def __exit__(self, *about: object) -> None:
        self._closing.close()

    @property
    def cluster_arn(self) -> str:
        """The HyperPod cluster's ARN."""
        return self.stack.place.arn("sagemaker", f"cluster/{CLUSTER_ID}")

    @property
    def kubernetes_url(self) -> str:
        """Where the cluster's API listens."""
        return self._kubernetes.url

    def serve_kubernetes_again(self) -> None:
        """Listen on a new port: a process that was forked from the one that opened the account has no threads yet."""
        held = self.stack.eks.cluster(self.eks_name)
        held.endpoint = self._kubernetes.start().url

    def functions(self) -> list[str]:
        """Return the logical ids of the functions."""
        return sorted(self.stack.translated.resources_of("AWS::Lambda::Function"))

    def environment(self, function: str) -> dict[str, str]:
        """Return the variables that the template gives a function."""
        variables = self.stack.resolved(function).properties["Environment"]["Variables"]
        return {name: str(value) for name, value in variables.items()}

    def credentials(self, function: str) -> Credentials:
        """Return keys of a function's role: calls signed with them are checked against its policies."""
        role = self.stack.resolved(function).properties["Role"]
        return self.stack.account.identities.assume(role, self.stack.physical(function))

    def person(self, name: str) -> dict[str, str]:
        """Return keys of an IAM user, with which an order to the entry may be signed."""
        key = self.stack.account.identities.key_of(name)
        return {"accessKeyId": key, "secretAccessKey": self.stack.account.identities.secret_of(key)}

    def _api_server(self, certificate: Path, key: Path) -> ClusterApiServer:
        return ClusterApiServer(
            self.cluster.store,
            verifier=TokenVerifier(
                self.eks_name,
                lambda: self.clock.now,
                groups_of=lambda key: self.stack.eks.groups_of(self.eks_name, key),
                name_of=self.stack.eks.username_of,
                sts_hosts=("127.0.0.1", "localhost", self._address[0]),
            ),
            rules=self._rules(),
            writes=self.cluster,
            address=self._address,
            certificate=(str(certificate), str(key)),
        )

    def _rules(self) -> Sequence[PolicyRule] | RulesOf:
        """Return what those with an access entry may do in the cluster."""
        return read_rules(RBAC)

    def _register(self, certificate: Path) -> None:
        sagemaker = self.stack.sagemaker
        sagemaker.register_cluster(CLUSTER_NAME, self.cluster, cluster_id=CLUSTER_ID, eks_cluster_name=EKS_NAME)
        authority = base64.b64encode(certificate.read_bytes()).decode()
        entries = dict.fromkeys(self.stack.outputs["KubernetesRoleArns"].split(","), (READERS,))
        add_ons = {TASK_GOVERNANCE_ADDON: AddOnState()} if self._bare is None else {}
        self.stack.eks.register_cluster(EKS_NAME, self.kubernetes_url, authority, entries=entries, addons=add_ons)
        self.stack.eks.on_addon_created(self._install)
        sagemaker.on_quota_settled(self._follow)
        sagemaker.on_scheduler_config_settled(self._follow)

    def _install(self, _cluster: str, add_on: str) -> None:
        if add_on == TASK_GOVERNANCE_ADDON:
            self.cluster.install_add_on()
            self._follow(None)

    def _follow(self, _settled: object) -> None:
        """Let the add-on in the cluster, if there is one, see what SageMaker holds now."""
        if TASK_GOVERNANCE_ADDON not in self.stack.eks.cluster(EKS_NAME).addons:
            return
        quotas = [ComputeQuota.model_validate(quota) for quota in self.stack.sagemaker.quotas(self.cluster_arn)]
        policy = self.stack.sagemaker.scheduler_config(self.cluster_arn)
        held = ClusterSchedulerConfig.model_validate(policy).scheduler_config if policy else None
        self.cluster.govern(quotas, held)

    def _seed(self) -> None:
        self.cluster.set_target(self._bare or WORKERS)
        self.stack.run_until_quiet()
        if self._bare is None:
            self._seed_teams()

    def _seed_teams(self) -> None:
        for team, instances in QUOTAS.items():
            self._create_quota(team, instances)
        self.stack.run_until_quiet()
        for team in QUOTAS:
            self.cluster.submit(job_manifest(team, "training", {"nvidia.com/gpu": "1"}, kind="PyTorchJob", pods=2))
        self._keep_well()
        self._put("policies/ml-cluster.yaml", DOCUMENTS / "policy.yaml")
        self.stack.run_until_quiet()
        self._put_what_samples_name()

    def _keep_well(self) -> None:
        """Have what the doctor looks for: a trail that logs, and a subscriber."""
        self.stack.client("s3").create_bucket(Bucket=TRAIL_BUCKET)
        trails = self.stack.client("cloudtrail")
        trails.create_trail(Name=TRAIL, S3BucketName=TRAIL_BUCKET)
        trails.start_logging(Name=TRAIL)
        topic = self.stack.outputs["NoticeTopicArn"]
        self.stack.client("sns").subscribe(TopicArn=topic, Protocol="email", Endpoint="ops@example.com")

    def _create_quota(self, team: str, instances: int) -> None:
        self.stack.client("sagemaker").create_compute_quota(
            Name=f"{team}-quota",
            ClusterArn=self.cluster_arn,
            ComputeQuotaTarget={"TeamName": team, "FairShareWeight": 10},
            ComputeQuotaConfig={
                "ComputeQuotaResources": [{"InstanceType": WORKERS.instance_type, "Count": instances}],
                "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 100},
            },
            ActivationState="Enabled",
        )

    def _put(self, key: str, file: Path) -> None:
        bucket = self.stack.physical("GovernanceBucket")
        self.stack.client("s3").put_object(Bucket=bucket, Key=key, Body=file.read_bytes())

    def _put_what_samples_name(self) -> None:
        """Store the snapshot and the plan, and let the sample's run hold the lock until another one takes it."""
        sample: dict[str, Any] = json.loads((EVENTS / "apply_change.json").read_text())
        planned: dict[str, Any] = json.loads((EVENTS / "plan_quotas.json").read_text())
        self._put(planned["snapshot"]["key"], DOCUMENTS / "snapshot.json")
        self._put(sample["plan"]["key"], DOCUMENTS / "plan.json")
        self.stack.client("dynamodb").update_item(
            TableName=self.stack.physical("GovernanceTable"),
            Key={name: {"S": value} for name, value in keys.state(self.cluster_arn).items()},
            UpdateExpression="SET lockOwner = :owner, fencingToken = :token, lockExpires = :now",
            ExpressionAttributeValues={
                ":owner": {"S": sample["lockOwner"]},
                ":token": {"N": str(sample["fencingToken"])},
                ":now": {"N": str(int(self.clock.now.timestamp()))},
            },
        )


def workers_of(text: str) -> GroupFact:
    """Read `TYPE=COUNT`, e.g. `ml.g5.8xlarge=4`. Raises InvalidRequestError."""
    instance_type, _, count = text.partition("=")
    if instance_type not in InstanceTypeTable():
        raise InvalidRequestError(
            f"--bare {text!r}: {instance_type!r} is not a known instance type, such as ml.g5.8xlarge"
        )
    if not count.isascii() or not count.isdigit() or not 1 <= int(count) <= MOST_WORKERS:
        raise InvalidRequestError(f"--bare {text!r}: {count!r} is not a number of instances from 1 to {MOST_WORKERS}")
    return GroupFact(WORKERS.name, instance_type, int(count))
