"""Read everything, then let each check decide: the whole examination in its order.

What hangs on something that could not be read is unknown for the same reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from taskgov.adapters.clock import SystemClock
from taskgov.backends.registry import backend_of
from taskgov.errors import InvalidRequestError, NotFoundError
from taskgov.policy.backends import Backend
from taskgov.policy.cluster import backend_named_in
from taskgov_cli.doctor import (
    checks_access,
    checks_account,
    checks_hyperpod,
    checks_plain_eks,
    network,
    reading_aws,
    sessions,
    state,
)
from taskgov_cli.doctor.checks_access import READERS
from taskgov_cli.doctor.facts import EventTrace, Facts, Unknown, names_of
from taskgov_cli.doctor.permissions import NEEDED
from taskgov_cli.doctor.reading_aws import read
from taskgov_cli.doctor.reading_kubernetes import ClusterReader

if TYPE_CHECKING:
    from taskgov_cli.doctor.backend_checks import BackendChecks
    from taskgov_cli.doctor.diagnosis import Diagnosis
    from taskgov_cli.doctor.facts import Cluster, DeployedStack, Network, Permission, PolicyFile, Read

LOOK_EVERY: Final = 5
"""Seconds between two searches for the trace of the test event."""

Say = Callable[[str], None]
T = TypeVar("T")
U = TypeVar("U")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Request:
    """What should be examined; `wait_seconds` is how long a test event is waited for, None sends none."""

    cluster: str
    stack: str
    context: str | None
    wait_seconds: float | None
    token: str


def examine(request: Request, say: Say) -> tuple[Facts, list[Diagnosis]]:
    """Return what was read and every check's answer. `say` is called with each step."""
    facts = read_facts(request, say)
    return facts, diagnose(facts, cluster=request.cluster, stack=request.stack)


def diagnose(facts: Facts, *, cluster: str, stack: str) -> list[Diagnosis]:
    """Return every check's answer on what was read, in the order in which to fix things."""
    names = names_of(facts, cluster=cluster, stack=stack)
    own = checks_of(facts.cluster, facts.policy, cluster)
    found = [
        *own.cluster(facts, names),
        checks_account.stack_deployed(facts.stack, names),
        checks_account.approvers(facts.stack, names),
        sessions.session_names(facts.sessions, names),
        network.network(facts.network, facts.eks, facts.stack, names),
        checks_access.authentication_mode(facts.eks, names),
        checks_access.access_entries(facts.entries, names),
        checks_access.kubernetes_rights(facts.rbac),
        checks_access.iam_permissions(facts.permissions, names),
        *own.events(facts, names),
        checks_account.subscriptions(facts.subscriptions, names),
        checks_account.policy_document(facts.policy, facts.cluster, names),
        state.governor(facts.governor, names),
    ]
    return found if facts.trace is None else [*found, checks_account.test_event(facts.trace, names)]


CHECKS: Final[Mapping[Backend, BackendChecks]] = {
    Backend.SAGEMAKER: checks_hyperpod.CHECKS,
    Backend.KUEUE: checks_plain_eks.CHECKS,
}
"""What the doctor checks for one backend's clusters only."""


def checks_of(cluster: Read[Cluster], policy: Read[PolicyFile], name: str) -> BackendChecks:
    """Return the checks of the backend that keeps the cluster's quotas, or would: `name` is what was requested."""

    def named(_: str) -> str | None:
        return None if isinstance(policy, Unknown) or policy.body is None else backend_named_in(policy.body)

    return CHECKS[backend_of(name if isinstance(cluster, Unknown) else cluster.arn, named)]


def read_facts(request: Request, say: Say) -> Facts:
    """Read everything that the checks decide on."""
    say("reading the cluster")
    cluster: Read[Cluster] = read(lambda: reading_aws.cluster(request.cluster))
    eks = then(cluster, lambda found: reading_aws.eks_cluster(_eks_name(found)))
    say("reading the account")
    stack: Read[DeployedStack] = read(lambda: reading_aws.deployed_stack(request.stack))
    policy = then(stack, lambda found: reading_aws.policy_file(_output(found, "BucketName"), _name(cluster, request)))
    own = checks_of(cluster, policy, request.cluster)
    say("reading the cluster's Kubernetes API")
    kubernetes = then(cluster, lambda found: ClusterReader(_eks_arn(found), request.context))
    return Facts(
        cluster=cluster,
        eks=eks,
        add_on=then(eks, reading_aws.add_on),
        kueues=then(kubernetes, lambda reader: reader.kueues()),
        trails=then(cluster, lambda found: reading_aws.trails(found.region)),
        stack=stack,
        entries=both(
            cluster,
            stack,
            lambda found, deployed: reading_aws.access_entries(_eks_name(found), _roles(found, deployed, own.groups)),
        ),
        rbac=then(kubernetes, lambda reader: reader.rights(own.rights)),
        permissions=both(cluster, stack, lambda found, deployed: _permissions(found, deployed, own)),
        subscriptions=then(stack, lambda found: reading_aws.subscriptions(_output(found, "NoticeTopicArn"))),
        policy=policy,
        governor=both(
            cluster,
            stack,
            lambda found, deployed: state.read_governor(
                found.arn, _output(deployed, "TableName"), _output(deployed, "BucketName")
            ),
        ),
        sessions=both(cluster, stack, lambda found, deployed: sessions.read_session_roles(deployed, found.account)),
        network=then(stack, _network),
        trace=None if request.wait_seconds is None else then(stack, lambda found: _trace(request, found, say)),
    )


def _network(stack: DeployedStack) -> Network | None:
    """Read the VPC of the functions that read Kubernetes; they all have the same subnets."""
    subnets = reading_aws.function_subnets(_resource(stack, "ReadSnapshotFunction"))
    return network.read_network(reading_aws.client("ec2"), subnets) if subnets else None


def _trace(request: Request, stack: DeployedStack, say: Say) -> EventTrace:
    """Send the test event and look for its trace. A trace that is never seen is an answer, not an error."""
    group, bus = _resource(stack, "ReceiveEventLogs"), _output(stack, "BusName")
    clock, limit = SystemClock(), request.wait_seconds or 0
    sent = clock.now()
    reading_aws.put_test_event(bus, request.token)
    while True:
        passed = (clock.now() - sent).total_seconds()
        if reading_aws.was_taken_in(group, request.token, int(sent.timestamp() * 1000) - 60_000):
            return EventTrace(request.token, (clock.now() - sent).total_seconds(), limit)
        if passed >= limit:
            return EventTrace(request.token, None, limit)
        say(f"waiting for the test event, {passed:.0f} of {limit:.0f} s")
        time.sleep(min(LOOK_EVERY, limit - passed))


def then(reading: Read[T], further: Callable[[T], U]) -> Read[U]:
    """Read on from something that was read; unknown stays unknown."""
    return reading if isinstance(reading, Unknown) else read(lambda: further(reading))


def both(reading: Read[T], other: Read[U], further: Callable[[T, U], V]) -> Read[V]:
    """Read on from two things."""
    if isinstance(reading, Unknown):
        return reading
    return then(other, lambda second: further(reading, second))


def _name(cluster: Read[Cluster], request: Request) -> str:
    """Return the cluster's name: where it cannot be read, its document has the name asked for."""
    return request.cluster.rpartition("/")[2] if isinstance(cluster, Unknown) else cluster.name


def _eks_arn(cluster: Cluster) -> str:
    if cluster.eks_arn is None:
        raise InvalidRequestError(f"{cluster.name} is not orchestrated by EKS")
    return cluster.eks_arn


def _eks_name(cluster: Cluster) -> str:
    return _eks_arn(cluster).rpartition("/")[2]


def _output(stack: DeployedStack, name: str) -> str:
    if name not in stack.outputs:
        raise NotFoundError(f"stack {stack.name} has no output {name}")
    return stack.outputs[name]


def _resource(stack: DeployedStack, logical_id: str) -> str:
    if logical_id not in stack.resources:
        raise NotFoundError(f"stack {stack.name} has no resource {logical_id}")
    return stack.resources[logical_id]


def _roles(cluster: Cluster, stack: DeployedStack, groups: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the roles that need an access entry, each with its group."""
    roles = [(arn, READERS) for arn in _output(stack, "KubernetesRoleArns").split(",")]
    return roles + [(reading_aws.role_arn(cluster, _resource(stack, role)), group) for role, group in groups.items()]


def _permissions(cluster: Cluster, stack: DeployedStack, own: BackendChecks) -> tuple[Permission, ...]:
    for output in checks_account.OUTPUTS:
        _output(stack, output)
    for resource in (*NEEDED, "OrderRights"):
        _resource(stack, resource)
    return reading_aws.permissions(cluster, stack, own.permissions(stack))
