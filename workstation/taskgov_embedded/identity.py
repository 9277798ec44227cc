"""Say who is calling: credentials are minted here for each role, and read back from a request's signature.

Requests that are signed with any other key come from a person (the test, the demo, the command line): these are not
checked against policies.
"""

from __future__ import annotations

import itertools
import re
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
        self._number = itertools.count(1)

    def assume(self, role_arn: str, session: str) -> Credentials:
        """Return the credentials of a session of a role, the same ones for the same session."""
        key = (role_arn, session)
        if key not in self._by_session:
            number = next(self._number)
            role = role_arn.rsplit("/", 1)[-1]
            credentials = Credentials(f"ASIA{number:016d}", f"secret-{number}", f"token-{number}")
            arn = f"arn:aws:sts::{self._account}:assumed-role/{role}/{session}"
            self._by_key[credentials.access_key] = Principal(arn, role_arn)
            self._by_session[key] = credentials
        return self._by_session[key]

    def key_of(self, person: str) -> str:
        """Return the access key of a user; nobody in particular is the operator."""
        if not person:
            return "AKIAPERSON"
        access_key = f"AKIA{person.upper()}"
        self._by_key[access_key] = Principal(f"arn:aws:iam::{self._account}:user/{person}", None)
        return access_key

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
