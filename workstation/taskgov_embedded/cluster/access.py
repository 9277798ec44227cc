"""Who may read the cluster's API? An EKS token is checked as EKS checks it, then the caller's role as RBAC does.

The token is a presigned STS GetCallerIdentity URL (aws-iam-authenticator): the header `x-k8s-aws-id` must be among the
signed ones, so that a token for one cluster does not work for another, and it is good for 15 minutes from its signing.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from taskgov_embedded import yaml_text

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

TOKEN_PREFIX: Final = "k8s-aws-v1."  # noqa: S105 - the form of a token, not one
TOKEN_LIFE: Final = timedelta(minutes=15)
CLUSTER_HEADER: Final = "x-k8s-aws-id"
ADMINISTRATORS: Final = "system:masters"
"""The group that RBAC lets do everything."""
READERS: Final = "taskgov-readers"
WRITERS: Final = "taskgov-writers"
VIEWERS: Final = "taskgov-viewers"
"""The groups of `docs/rbac.yaml`, which the access entries of the functions and of people who look name."""
STS_HOST: Final = re.compile(r"sts(\.[a-z0-9-]+)?\.amazonaws\.com(\.cn)?")


class UnauthorizedError(Exception):
    """The token is none that EKS would take; the message says why."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who signed the token, and the Kubernetes groups that the access entry gives."""

    access_key_id: str
    groups: frozenset[str] = frozenset({READERS})
    username: str = ""
    """The caller's name in Kubernetes; for EKS the ARN, unless the access entry says otherwise."""


class TokenVerifier:
    """Checks bearer tokens for one cluster.

    With `secret_of` (access key id -> secret key, None when unknown) the signature itself is checked too, and with it
    that the token was made for this cluster: its name is in what was signed, not in the token. With `groups_of` (access
    key id -> Kubernetes groups, None without an access entry) only who has an access entry is let in. `name_of` (access
    key id -> ARN) says the name of the caller in Kubernetes.

    `sts_hosts` are hosts besides AWS's that answer for STS, also without TLS: `aws eks get-token` signs its token for
    the endpoint that AWS_ENDPOINT_URL names.
    """

    def __init__(
        self,
        cluster_name: str,
        now: Callable[[], datetime],
        secret_of: Callable[[str], str | None] | None = None,
        groups_of: Callable[[str], frozenset[str] | None] | None = None,
        sts_hosts: Collection[str] = (),
        name_of: Callable[[str], str] | None = None,
    ) -> None:
        self._sts_hosts = frozenset(sts_hosts)
        self._name_of = name_of or (lambda access_key_id: access_key_id)
        self._cluster_name = cluster_name
        self._now = now
        self._secret_of = secret_of
        self._groups_of = groups_of

    def verify(self, authorization: str | None) -> Caller:
        """Return the caller of an Authorization header. Raises UnauthorizedError."""
        scheme, _, token = (authorization or "").partition(" ")
        if scheme != "Bearer" or not token.startswith(TOKEN_PREFIX):
            raise UnauthorizedError("no EKS bearer token")
        url = _decoded(token.removeprefix(TOKEN_PREFIX))
        asked = dict(parse_qsl(urlsplit(url).query))
        _require_identity_call(url, asked, self._sts_hosts)
        self._require_fresh(asked)
        access_key_id = asked.get("X-Amz-Credential", "").partition("/")[0]
        self._require_signature(url, asked, access_key_id)
        return self._admitted(access_key_id)

    def _admitted(self, access_key_id: str) -> Caller:
        name = self._name_of(access_key_id)
        if self._groups_of is None:
            return Caller(access_key_id, username=name)
        groups = self._groups_of(access_key_id)
        if groups is None:
            raise UnauthorizedError("the caller has no access entry")
        return Caller(access_key_id, groups, name)

    def _require_fresh(self, asked: Mapping[str, str]) -> None:
        signed_at, lasts = asked.get("X-Amz-Date", ""), asked.get("X-Amz-Expires", "")
        if not lasts.isdigit() or int(lasts) > TOKEN_LIFE.total_seconds():
            raise UnauthorizedError(f"X-Amz-Expires is {lasts!r}, not 0 to 900")
        try:
            moment = datetime.strptime(signed_at, "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        except ValueError as error:
            raise UnauthorizedError(f"X-Amz-Date is {signed_at!r}") from error
        if not moment <= self._now() + timedelta(minutes=5) or self._now() > moment + TOKEN_LIFE:
            raise UnauthorizedError(f"the token of {signed_at} is expired or from the future")

    def _require_signature(self, url: str, asked: Mapping[str, str], access_key_id: str) -> None:
        if self._secret_of is None:
            return
        secret = self._secret_of(access_key_id)
        credentials = None if secret is None else Credentials(access_key_id, secret)
        if credentials is None or _signature(url, asked, credentials, self._cluster_name) != asked["X-Amz-Signature"]:
            raise UnauthorizedError(f"the signature is not that of {access_key_id} for cluster {self._cluster_name}")


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """One rule of a role: these verbs on these resources of these API groups.

    `namespace` is that of the binding, None for the whole cluster; `names` are `resourceNames`, none for every object.
    """

    api_groups: frozenset[str]
    resources: frozenset[str]
    verbs: frozenset[str]
    namespace: str | None = None
    names: frozenset[str] = frozenset()

    def allows(
        self, verb: str, group: str, resource: str, namespace: str | None = None, name: str | None = None
    ) -> bool:
        """Return whether the rule covers a request; `*` covers everything, as in RBAC.

        A binding in a namespace covers requests there only, and no list of all namespaces.
        """
        if self.namespace not in {None, namespace} or (self.names and name not in self.names):
            return False
        return all(
            asked in given or "*" in given
            for asked, given in ((verb, self.verbs), (group, self.api_groups), (resource, self.resources))
        )


EVERYTHING: Final = (PolicyRule(frozenset("*"), frozenset("*"), frozenset("*")),)
"""What a cluster administrator may do."""


def read_rules(path: Path, group: str = "taskgov-readers") -> tuple[PolicyRule, ...]:
    """Return what a group may do by the roles and bindings in a manifest, such as `docs/rbac.yaml`."""
    return rules_in(path.read_text(encoding="utf-8"), group)


def rules_in(manifest: str, group: str) -> tuple[PolicyRule, ...]:
    """Return what a group may do by the ClusterRoles, Roles and their bindings in the text of a manifest."""
    documents: list[dict[str, Any]] = list(yaml_text.read_all(manifest))
    roles = {
        (document["kind"], document["metadata"].get("namespace"), document["metadata"]["name"]): document
        for document in documents
    }
    return tuple(
        PolicyRule(
            frozenset(rule["apiGroups"]),
            frozenset(rule["resources"]),
            frozenset(rule["verbs"]),
            binding["metadata"].get("namespace"),
            frozenset(rule.get("resourceNames", ())),
        )
        for binding in documents
        if binding["kind"] in {"ClusterRoleBinding", "RoleBinding"}
        if any(subject["kind"] == "Group" and subject["name"] == group for subject in binding["subjects"])
        for rule in _role_of(binding, roles).get("rules", ())
    )


def _role_of(binding: Mapping[str, Any], roles: Mapping[tuple[str, str | None, str], Any]) -> Mapping[str, Any]:
    """Return the role that a binding names; one that is not there allows nothing."""
    reference = binding["roleRef"]
    namespace = binding["metadata"].get("namespace") if reference["kind"] == "Role" else None
    role: Mapping[str, Any] = roles.get((reference["kind"], namespace, reference["name"]), {})
    return role


def _decoded(encoded: str) -> str:
    try:
        return base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode()
    except ValueError as error:
        raise UnauthorizedError("the token is not base64url text") from error


def _require_identity_call(url: str, asked: Mapping[str, str], own_hosts: frozenset[str]) -> None:
    parts = urlsplit(url)
    host = parts.hostname or ""
    is_sts = host in own_hosts or (parts.scheme == "https" and STS_HOST.fullmatch(host))
    if not is_sts or parts.path not in {"", "/"}:
        raise UnauthorizedError(f"the token names {parts.scheme}://{parts.netloc}{parts.path}, not STS")
    if asked.get("Action") != "GetCallerIdentity" or asked.get("Version") != "2011-06-15":
        raise UnauthorizedError("the token is not for GetCallerIdentity")
    if CLUSTER_HEADER not in asked.get("X-Amz-SignedHeaders", "").split(";"):
        raise UnauthorizedError(f"the token does not sign {CLUSTER_HEADER}")


def _signature(url: str, asked: Mapping[str, str], credentials: Credentials, cluster_name: str) -> str:
    """Sign what the token claims to have signed, with botocore's steps; the header's value is this cluster's."""
    region = asked["X-Amz-Credential"].split("/")[2]
    unsigned = url.partition("&X-Amz-Signature=")[0]
    request = AWSRequest("GET", unsigned, headers={CLUSTER_HEADER: cluster_name})
    request.context["timestamp"] = asked["X-Amz-Date"]
    signer = SigV4QueryAuth(credentials, "sts", region)
    canonical = signer.canonical_request(request)
    return str(signer.signature(signer.string_to_sign(request, canonical), request))
