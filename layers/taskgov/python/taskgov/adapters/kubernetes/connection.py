"""How is a cluster's API reached, and as whom? EKS returns endpoint and certificate; a presigned STS call is the token.

EKS takes `k8s-aws-v1.` and the URL of a presigned GetCallerIdentity that signs the header `x-k8s-aws-id` (the cluster's
name), for 15 minutes (aws-iam-authenticator, API v1). The caller's role needs an access entry; see `docs/rbac.yaml`.
"""

import base64
import ipaddress
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import urlsplit

import urllib3
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from kubernetes import client

from taskgov.adapters.errors import translated
from taskgov.errors import InvalidRequestError, UpstreamError
from taskgov.ports import ClusterAccess

if TYPE_CHECKING:
    from boto3.session import Session
    from mypy_boto3_eks import EKSClient
    from mypy_boto3_eks.type_defs import ClusterTypeDef

TOKEN_REUSED_FOR: Final = timedelta(minutes=10)
"""EKS takes a token for 15 minutes; a shorter use leaves room for a long page of a long list."""
PRESIGNED_FOR_SECONDS: Final = 60
CONNECT_RETRIES: Final = 2
DESCRIBED_FOR: Final = timedelta(seconds=30)
"""How long EKS's answer is used: a snapshot opens three connections, one after the other."""


class ApiConnections(Protocol):
    """Opens the API of a cluster."""

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        """Return a client, to be closed by the caller. Raises NotFoundError, ThrottledError, UpstreamError."""
        ...


class EksConnections:
    """Connects to EKS clusters with the credentials of a session; the client renews its token by itself."""

    def __init__(self, eks: "EKSClient", session: "Session", now: Callable[[], datetime]) -> None:
        self._eks = eks
        self._session = session
        self._now = now
        self._described: dict[str, tuple[datetime, ClusterTypeDef]] = {}

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        """Return a client of the API of an EKS cluster, which is described for it unless it just was."""
        name, region, suffix = _parts_of(cluster.eks_cluster_arn)
        token = _Token(lambda: self._presigned(name, region, suffix), self._now)
        return client.ApiClient(_configuration(self._describe(name), token))

    def _describe(self, name: str) -> "ClusterTypeDef":
        now = self._now()
        at, described = self._described.get(name, (None, None))
        if at is None or described is None or now - at >= DESCRIBED_FOR:
            with translated(f"describe EKS cluster {name}"):
                described = self._eks.describe_cluster(name=name)["cluster"]
            self._described = {name: (now, described)}
        return described

    def _presigned(self, cluster_name: str, region: str, suffix: str) -> str:
        """Return a token for the cluster, signed with the session's present credentials (no call is made)."""
        credentials = self._session.get_credentials()
        if credentials is None:
            raise UpstreamError("no AWS credentials to sign a token for the cluster")
        signer = RequestSigner(ServiceId("STS"), region, "sts", "v4", credentials, self._session.events)
        request = {
            "method": "GET",
            "url": f"https://sts.{region}.{suffix}/?Action=GetCallerIdentity&Version=2011-06-15",
            "body": {},
            "headers": {"x-k8s-aws-id": cluster_name},
            "context": {},
        }
        url = signer.generate_presigned_url(
            request, region_name=region, expires_in=PRESIGNED_FOR_SECONDS, operation_name=""
        )
        return "k8s-aws-v1." + base64.urlsafe_b64encode(url.encode()).decode().rstrip("=")


class _Token:
    """A token that is made again when it has been used for a while."""

    def __init__(self, make: Callable[[], str], now: Callable[[], datetime]) -> None:
        self._make = make
        self._now = now
        self._made_at: datetime | None = None

    def put_into(self, configuration: client.Configuration) -> None:
        """Give the client a token that is young enough; the client calls it before every request."""
        now = self._now()
        if self._made_at is None or now - self._made_at >= TOKEN_REUSED_FOR:
            configuration.api_key["authorization"] = f"Bearer {self._make()}"
            self._made_at = now


def _configuration(described: "ClusterTypeDef", token: _Token) -> client.Configuration:
    endpoint = described.get("endpoint", "")
    configuration = client.Configuration(host=_safe(endpoint))
    if _is_loopback(endpoint):
        configuration.proxy = None
    if urlsplit(endpoint).scheme == "https":
        certificate = described.get("certificateAuthority", {}).get("data", "")
        configuration.ca_cert_data = base64.b64decode(certificate).decode()
    # What is throttled or failing is for the state machine to try again, which waits without being paid for.
    configuration.retries = urllib3.Retry(CONNECT_RETRIES, status=0, respect_retry_after_header=False)
    token.put_into(configuration)  # without a first one the client thinks that it needs none
    configuration.refresh_api_key_hook = token.put_into
    return configuration


def _safe(endpoint: str) -> str:
    """Return the endpoint if a token may be sent there: over TLS, or to this very machine (the embedded stack)."""
    scheme = urlsplit(endpoint).scheme
    if scheme == "https" or (scheme == "http" and _is_loopback(endpoint)):
        return endpoint
    raise UpstreamError(f"no token is sent to {endpoint!r}: it is neither https nor this machine")


def _is_loopback(endpoint: str) -> bool:
    host = urlsplit(endpoint).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _parts_of(eks_cluster_arn: str) -> tuple[str, str, str]:
    """Return name, Region and DNS suffix of `arn:<partition>:eks:<region>:<account>:cluster/<name>`."""
    match eks_cluster_arn.split(":"):
        case ["arn", partition, "eks", region, _, resource] if resource.startswith("cluster/"):
            suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
            return resource.removeprefix("cluster/"), region, suffix
        case _:
            raise InvalidRequestError(f"{eks_cluster_arn!r} is not the ARN of an EKS cluster")
