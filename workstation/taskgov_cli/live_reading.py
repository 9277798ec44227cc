"""Read a live cluster, for the commands that ask about one. Nothing is ever written.

It takes the AWS credentials of the environment for SageMaker and EKS; Kubernetes is read with a token for the EKS
cluster, or through a context of the kubeconfig. With `--stack`, the deployed stack's bucket and table give the policy
document and the memory of the stack: health of nodes, applied quotas, edits, earlier audits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import boto3

from taskgov.adapters.clock import SystemClock
from taskgov.adapters.dynamodb import Table
from taskgov.adapters.kubernetes import EksConnections, KubernetesReader
from taskgov.adapters.s3 import Bucket
from taskgov.backends import registry
from taskgov.bootstrap.aws import CONFIG
from taskgov.errors import InvalidRequestError
from taskgov.services.take_snapshot import TakeSnapshot
from taskgov.snapshot.unseen import Part
from taskgov_cli.cluster_names import suggesting
from taskgov_cli.kubeconfig import KubeconfigContext
from taskgov_cli.own_reading import OwnBackends, OwnKubernetes
from taskgov_cli.stack_outputs import DEFAULT_STACK, stack_outputs

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov.adapters.kubernetes import ApiConnections
    from taskgov.backends.backends import Backends
    from taskgov.ports import DocumentStore, StateStore
    from taskgov.snapshot.model import Snapshot
    from taskgov_cli.own_rights import OwnRights

_STORES: Final = ("TableName", "BucketName")


def read_live(
    cluster: str, stack: str | None = None, context: str | None = None, rights: OwnRights | None = None
) -> Snapshot:
    """Read a cluster now. Raises `GovernanceError`; with `rights`, what they do not reach is left out instead."""
    clock, session = SystemClock(), boto3.Session()
    connections = connections_of(session, context)
    documents_of, state = _stores(session, stack)
    reached = backends_of(session, documents_of, connections)
    if rights is None:
        with suggesting(cluster):
            return TakeSnapshot(reached, KubernetesReader(connections), documents_of, state, clock)(cluster)
    if context is not None and not rights.namespaces:
        rights.namespaces = KubeconfigContext(context).namespaces()
    if stack is not None:
        documents_of = cast("DocumentStore", _AsFarAsRightsGo(documents_of, _NoDocuments(), rights))
        state = cast("StateStore", _AsFarAsRightsGo(state, _NothingRemembered(), rights))
    own = OwnBackends(reached.by_name, reached.name_of, reached.failures, rights)
    take = TakeSnapshot(own, OwnKubernetes(connections, rights), documents_of, state, clock)
    with suggesting(cluster):
        return rights.marked(take(cluster))


def backends_of(session: boto3.Session, documents_of: DocumentStore, connections: ApiConnections) -> Backends:
    """Return the port over all backends, with the credentials of a session."""

    def client_of(service: str) -> Callable[[], Any]:
        return lambda: session.client(service, config=CONFIG)  # type: ignore[call-overload]

    sagemaker, eks, ec2, auto_scaling = map(client_of, ("sagemaker", "eks", "ec2", "autoscaling"))
    return registry.backends(registry.Reach(documents_of, connections, sagemaker, eks, ec2, auto_scaling))


def connections_of(session: boto3.Session, context: str | None) -> ApiConnections:
    """Return how Kubernetes is reached: through a context of the kubeconfig, or with a token for the EKS cluster."""
    if context:
        return KubeconfigContext(context)
    return EksConnections(session.client("eks", config=CONFIG), session, SystemClock().now)


def documents_of(stack: str | None) -> DocumentStore:
    """Return the documents of a stack; without one, a bucket with nothing in it. Raises `GovernanceError`."""
    documents, _ = _stores(boto3.Session(), stack)
    return documents


def default_stack(cluster: str, *, needs_records: bool) -> str | None:
    """Return the name of the default stack; None where there is none. Raises GovernanceError.

    With `needs_records`, also where the document or the records of a cluster may not be read.
    """
    try:
        stack_outputs(boto3.client("cloudformation", config=CONFIG), DEFAULT_STACK, *_STORES)
    except InvalidRequestError:  # CloudFormation's answer for a stack that does not exist
        return None
    if needs_records:
        documents, state = _stores(boto3.Session(), DEFAULT_STACK)
        documents.policy(cluster.rpartition("/")[2])
        state.applied_quotas(cluster)
    return DEFAULT_STACK


def _stores(session: boto3.Session, stack: str | None) -> tuple[DocumentStore, StateStore]:
    if stack is None:
        return cast("DocumentStore", _NoDocuments()), cast("StateStore", _NothingRemembered())
    names = stack_outputs(session.client("cloudformation", config=CONFIG), stack, *_STORES)
    table = session.resource("dynamodb", config=CONFIG).Table(names["TableName"])
    return Bucket(session.client("s3", config=CONFIG), names["BucketName"]), Table(table)


class _AsFarAsRightsGo:
    """A port of a stack: a call that is refused is answered as where there is nothing, and kept as not visible."""

    def __init__(self, reached: object, instead: object, rights: OwnRights) -> None:
        self._reached, self._instead, self._rights = reached, instead, rights

    def __getattr__(self, name: str) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            instead = getattr(self._instead, name)(*arguments)
            return self._rights.try_(Part.RECORDS, lambda: getattr(self._reached, name)(*arguments), instead)

        return call


class _NoDocuments:
    """What TakeSnapshot reads of a bucket, where there is none."""

    @staticmethod
    def policy(_cluster_name: str) -> None:
        return None

    @staticmethod
    def find(_key: str) -> None:
        return None

    @staticmethod
    def policy_names() -> tuple[()]:
        return ()


class _NothingRemembered:
    """What TakeSnapshot reads of a table, where there is none."""

    @staticmethod
    def applied_quotas(_cluster_arn: str, _on_unreadable: object = None) -> tuple[()]:
        return ()

    @staticmethod
    def applied_policy(_cluster_arn: str, _on_unreadable: object = None) -> None:
        return None

    @staticmethod
    def refusals(_cluster_arn: str, _on_unreadable: object = None) -> tuple[()]:
        return ()

    @staticmethod
    def edits(_cluster_arn: str, _on_unreadable: object = None) -> tuple[()]:
        return ()

    @staticmethod
    def stamp(_cluster_arn: str, _on_unreadable: object = None) -> None:
        return None

    @staticmethod
    def stop_switch() -> bool:
        return False
