"""Say who is calling: credentials are minted here for each role, and read back from a request's signature.

Requests that are signed with any other key come from a person (the test, the demo, the command line): these are not
checked against policies.
"""

from __future__ import annotations

import itertools
import os
import re
import uuid
from dataclasses import dataclass

_ACCESS_KEY = re.compile(r"Credential=([^/]+)/[0-9]+/([^/]+)/([^/]+)/aws4_request")


@dataclass(frozen=True, slots=True)
class Credentials:
    """What a caller signs with."""

    access_key: str
    secret_key: str
    token: str


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls: `arn` is the session's (or the user's), `role_arn` the role's, or None for a person."""

    arn: str
    role_arn: str | None
    tags: tuple[tuple[str, str], ...] = ()
    """The tags of the role or of the session (`aws:PrincipalTag`)."""

    @property
    def name(self) -> str:
        """The role's or the user's own name."""
        return (self.role_arn or self.arn).rsplit("/", 1)[-1]


@dataclass(frozen=True, slots=True)
class Signature:
    """Who signed, for which Region and service."""

    access_key: str
    region: str
    signing_name: str


class Identities:
    """The keys that have been given out, and the person behind all others."""

    def __init__(self, account: str, person: str = "operator") -> None:
        self._account = account
        self.person = Principal(f"arn:aws:iam::{account}:user/{person}", None)
        self._by_key: dict[str, Principal] = {}
        self._by_session: dict[tuple[str, str], Credentials] = {}
        self._secrets: dict[str, str] = {}
        self._number = itertools.count(1)

    def assume(self, role_arn: str, session: str, **tags: str) -> Credentials:
        """Return the credentials of a session of a role, the same ones for the same session."""
        key = (role_arn, session)
        if key not in self._by_session:
            number = next(self._number)
            role = role_arn.rsplit("/", 1)[-1]
            credentials = Credentials(f"ASIA{number:016d}", f"secret-{number}", f"token-{number}")
            arn = f"arn:aws:sts::{self._account}:assumed-role/{role}/{session}"
            self._by_key[credentials.access_key] = Principal(arn, role_arn, tuple(tags.items()))
            self._by_session[key] = credentials
            self._secrets[credentials.access_key] = credentials.secret_key
        return self._by_session[key]

    def key_of(self, person: str) -> str:
        """Return the access key of a person: `ana` is a user, `Approvers/ana` a session of a role.

        Nobody in particular is the operator. The role need not be in the template: people are checked by no policy.
        """
        if not person:
            return "AKIAPERSON"
        role, _, session = person.rpartition("/")
        access_key = f"{'ASIA' if role else 'AKIA'}{re.sub('[^A-Z0-9]', '', person.upper())}"
        kind = f"sts::{self._account}:assumed-role/{role}/{session}" if role else f"iam::{self._account}:user/{person}"
        self._by_key[access_key] = Principal(f"arn:aws:{kind}", None)
        return access_key

    def secret_of(self, access_key: str) -> str:
        """Return the secret that belongs to an access key; every person's is the one in the process's environment."""
        return self._secrets.get(access_key) or os.environ.get("AWS_SECRET_ACCESS_KEY", "secret")

    def user_id(self, principal: Principal) -> str:
        """Return the unique id of a caller, in the form that AWS gives it."""
        kind, _, name = principal.arn.rpartition(":")[2].partition("/")
        holder, _, session = name.partition("/")
        unique = (
            f"{'AROA' if kind == 'assumed-role' else 'AIDA'}{uuid.uuid5(uuid.NAMESPACE_URL, holder).hex[:17].upper()}"
        )
        return f"{unique}:{session}" if kind == "assumed-role" else unique

    def principal(self, access_key: str) -> Principal:
        """Return whom the key was given to."""
        return self._by_key.get(access_key, self.person)


def read_signature(authorization: str) -> Signature | None:
    """Read the Authorization header of a signed request; None when it is not one.

    >>> read_signature("AWS4-HMAC-SHA256 Credential=ASIA1/20261120/us-east-1/states/aws4_request, SignedHeaders=host")
    Signature(access_key='ASIA1', region='us-east-1', signing_name='states')
    """
    found = _ACCESS_KEY.search(authorization)
    return Signature(found[1], found[2], found[3]) if found else None
