"""What the doctor reads of an account and a cluster: each thing as it is, or why it could not be read.

The readers of `reading_*` make these values; the checks decide on nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov.snapshot.identity import Claim, StateStamp

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Something that could not be read, and why: never taken for good, never for bad."""

    reason: str


Read: TypeAlias = T | Unknown


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that is, or will be, governed: its state and its EKS cluster."""

    name: str
    arn: str
    status: str
    eks_arn: str | None

    @property
    def partition(self) -> str:
        """The ARN's partition, e.g. `aws`."""
        return self.arn.split(":")[1]

    @property
    def region(self) -> str:
        """The Region of the cluster."""
        return self.arn.split(":")[3]

    @property
    def account(self) -> str:
        """The account of the cluster."""
        return self.arn.split(":")[4]


@dataclass(frozen=True, slots=True)
class EksCluster:
    """DescribeCluster of EKS."""

    name: str
    version: str
    authentication_mode: str
    status: str = "ACTIVE"
    public: bool = True
    """Whether its endpoint is reached from outside its VPC."""


@dataclass(frozen=True, slots=True)
class AddOn:
    """DescribeAddon of the task governance add-on; `newest` is what EKS offers for the cluster's Kubernetes."""

    version: str
    status: str
    issues: tuple[str, ...]
    newest: Read[str]


@dataclass(frozen=True, slots=True)
class KueueDeployment:
    """A Deployment that looks like a Kueue controller, and the Helm release that installed it, if one did."""

    namespace: str
    name: str
    image: str
    helm_release: str | None = None


@dataclass(frozen=True, slots=True)
class KueueDefinition:
    """A CustomResourceDefinition of Kueue: who owns its fields, and the Helm release that installed it, if one did."""

    name: str
    owners: tuple[str, ...]
    helm_release: str | None = None
    helm_namespace: str | None = None


@dataclass(frozen=True, slots=True)
class Kueues:
    """Everything in the cluster that belongs to some Kueue."""

    deployments: tuple[KueueDeployment, ...]
    definitions: tuple[KueueDefinition, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """Whether a group of Kubernetes may do one thing to one resource type (SubjectAccessReview)."""

    kubernetes_group: str
    verb: str
    group: str
    resource: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class Trail:
    """A CloudTrail trail that covers this Region."""

    name: str
    logging: Read[bool]
    records_writes: Read[bool]
    """Whether management events that write are among what it records."""


@dataclass(frozen=True, slots=True)
class DeployedStack:
    """The CloudFormation stack: its status, outputs, and physical ids by logical id."""

    name: str
    status: str
    outputs: Mapping[str, str]
    resources: Mapping[str, str]
    drift: str = "NOT_CHECKED"
    """CloudFormation's StackDriftStatus, as of the last time that somebody let it look."""


@dataclass(frozen=True, slots=True)
class AccessEntry:
    """The EKS access entry of a role; `groups` is None where there is none, `wanted` is the group that it needs."""

    role_arn: str
    wanted: str
    groups: Read[tuple[str, ...] | None]


@dataclass(frozen=True, slots=True)
class Permission:
    """What IAM says of one action of a function's role (SimulatePrincipalPolicy)."""

    role: str
    """Logical id in the template."""
    role_name: str
    action: str
    resource: str
    decision: str
    """`allowed`, `implicitDeny` or `explicitDeny`."""
    stopped_by_boundary: bool = False
    stopped_by_organization: bool = False


@dataclass(frozen=True, slots=True)
class Subscription:
    """Who subscribes to the topic; one that waits for confirmation gets nothing."""

    protocol: str
    endpoint: str
    confirmed: bool


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """The cluster's document in the bucket; `body` is None where there is none."""

    key: str
    body: bytes | None


@dataclass(frozen=True, slots=True)
class EventTrace:
    """What became of the test event. `seconds` until its trace was seen, None when it was not within `waited`."""

    token: str
    seconds: float | None
    waited: float


@dataclass(frozen=True, slots=True)
class Governor:
    """The identity of the stack's records, None before a run has looked, and the marks on the cluster."""

    stamp: StateStamp | None
    claims: tuple[Claim, ...]


@dataclass(frozen=True, slots=True)
class TrustedRole:
    """A role and who may assume it."""

    arn: str
    path: str
    trust: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SessionRoles:
    """The roles that the stack's `Approvers` and `NamedSessionRoles` name, as far as they could be read."""

    named: tuple[str, ...]
    """`NamedSessionRoles`: patterns of ARNs."""
    roles: tuple[TrustedRole, ...]
    unseen: tuple[str, ...] = ()
    """What could not be read, and why."""


@dataclass(frozen=True, slots=True)
class Network:
    """The VPC of the functions that run in one."""

    vpc: str
    endpoints: Mapping[str, str]
    """Names of endpoint services -> why the endpoint does not do, empty where it does."""
    without_way_out: tuple[str, ...]
    """Subnets of the functions whose routes lead to nothing outside the VPC."""
    only_ipv6: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Facts:
    """All that was read. What was not asked for is absent from what is diagnosed (`trace` is None then)."""

    cluster: Read[Cluster]
    eks: Read[EksCluster]
    add_on: Read[AddOn | None]
    kueues: Read[Kueues]
    trails: Read[tuple[Trail, ...]]
    stack: Read[DeployedStack]
    entries: Read[tuple[AccessEntry, ...]]
    rbac: Read[tuple[Access, ...]]
    permissions: Read[tuple[Permission, ...]]
    subscriptions: Read[tuple[Subscription, ...]]
    policy: Read[PolicyFile]
    governor: Read[Governor]
    sessions: Read[SessionRoles]
    network: Read[Network | None]
    """None where the functions run outside a VPC."""
    trace: Read[EventTrace] | None = None


@dataclass(frozen=True, slots=True)
class Names:
    """How the commands that fix call things, also where they could not be read."""

    cluster: str
    stack: str
    eks: str = "EKS_CLUSTER"
    region: str = "REGION"
    account: str = "ACCOUNT"
    outputs: Mapping[str, str] = field(default_factory=dict)

    def output(self, name: str) -> str:
        """Return an output of the stack, or its name in capitals for the reader to fill in."""
        return self.outputs.get(name, name.upper())


def names_of(facts: Facts, *, cluster: str, stack: str) -> Names:
    """Return the names for commands, as far as they are known."""
    outputs = facts.stack.outputs if isinstance(facts.stack, DeployedStack) else {}
    found = facts.cluster
    if isinstance(found, Unknown):
        return Names(cluster=cluster, stack=stack, outputs=outputs)
    eks = found.eks_arn.rpartition("/")[2] if found.eks_arn else "EKS_CLUSTER"
    return Names(found.name, stack, eks, found.region, found.account, outputs)
