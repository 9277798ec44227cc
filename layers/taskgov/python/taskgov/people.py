"""Who gave an order: the person behind a caller whom AWS attests, and which callers may approve.

`services.take_order` calls it for each order, `services.plan_quotas` compares author and approver. The caller's ARN is
what AWS puts into the request context of a signed call; nothing here reads what the caller says of himself.

| caller | person |
| --- | --- |
| IAM user | the user |
| session of a role of IAM Identity Center (`AWSReservedSSO_...`) | the user of Identity Center: the session's name |
| session of a role in `NamedSessionRoles` | the session: the role's trust policy enforces its name |
| session of any other role | the role: the caller who assumes it chooses the session's name |
| root | the account's root |
| federated user (`GetFederationToken`), anything else | nobody: refused |

Paths are left out of users and roles: names are unique in an account, and the ARN of a session has no path. So a
pattern with a path names one user or role, and no `*` stands in its name: `role/leads/*` would be every role.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from taskgov.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_PATTERNS: Final = 50
MAX_PATTERN: Final = 300
"""Characters: an ARN with a path of 512 is longer, but a pattern needs no path."""
IDENTITY_CENTER: Final = "AWSReservedSSO_"

_PRINCIPAL: Final = re.compile(r"arn:(aws[a-z-]{0,20}):(iam|sts)::(\d{12}):(root|user|assumed-role)(?:/(.{1,1200}))?")
_PATTERN: Final = re.compile(r"arn:(aws[a-z-]{0,20}|\*):(iam|sts)::(\d{12}|\*):(user|role|assumed-role)/([!-~]{1,256})")
_SESSION: Final = re.compile(r"[\w+=,.@-]{2,64}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Person:
    """A person, as far as AWS distinguishes people."""

    identity: str
    """What is compared and recorded: an ARN without path, or `identity-center/<user>`."""
    arn: str
    """The caller as AWS names it, the session included: what records show."""
    names: tuple[str, ...]
    """ARNs that a pattern may match: user, role, named session."""


def person_of(user_arn: str, named_session_roles: Iterable[str] = ()) -> Person:
    """Return the person behind a caller's ARN (`requestContext.authorizer.iam.userArn`).

    `named_session_roles` are names or patterns of ARNs of roles whose trust policy enforces the session's name. Raises
    InvalidRequestError for a caller that is not a person: a service, a federated user, a malformed ARN.

    Example:
        >>> person_of("arn:aws:sts::111122223333:assumed-role/Approvers/ana").identity
        'arn:aws:iam::111122223333:role/Approvers'
        >>> person_of("arn:aws:sts::111122223333:assumed-role/AWSReservedSSO_Lead_0123456789abcdef/Ana").identity
        'identity-center/ana'
    """
    found = _PRINCIPAL.fullmatch(user_arn)
    if found is None:
        raise InvalidRequestError(
            f"caller {user_arn[:200]!r} is not a person that can be identified: "
            "sign with an IAM user's or a role's credentials"
        )
    partition, _, account, kind, rest = found.groups()
    prefix = f"arn:{partition}:iam::{account}:"
    match kind, rest:
        case "root", None:
            return Person(f"{prefix}root", user_arn, ())
        case "user", str():
            name = f"{prefix}user/{rest.rsplit('/', 1)[-1]}"
            return Person(name, user_arn, (name,))
        case "assumed-role", str() if len(parts := rest.split("/")) == 2 and _SESSION.fullmatch(parts[1]):
            return _of_session(user_arn, prefix, parts, tuple(named_session_roles))
        case _:
            raise InvalidRequestError(f"caller {user_arn[:200]!r} is not the ARN of a user, a role's session or root")


def _of_session(user_arn: str, prefix: str, parts: list[str], named: tuple[str, ...]) -> Person:
    role, session = parts
    role_arn = f"{prefix}role/{role}"
    if role.startswith(IDENTITY_CENTER):
        return Person(f"identity-center/{session.casefold()}", user_arn, (role_arn, user_arn))
    if any(matches_principal(pattern, role_arn) for pattern in named):
        return Person(user_arn, user_arn, (role_arn, user_arn))
    return Person(role_arn, user_arn, (role_arn,))


def is_same_person(identity: str, other: str) -> bool:
    """Return whether two identities (`Person.identity`) may be one person.

    Equal identities are. So are a user of Identity Center, an IAM user and a named session of one name: a person often
    has several of these, and two people who share a name are better refused than one person counted twice. So are a
    role and a named session of it: one of the two was recorded before `NamedSessionRoles` was changed.

    Example:
        >>> is_same_person("arn:aws:iam::111122223333:user/ana", "identity-center/ana")
        True
    """
    return (
        identity == other
        or _name(identity) == _name(other)
        or _role_of(identity) == other
        or _role_of(other) == identity
    )


def _role_of(identity: str) -> str | None:
    """Return the identity of the role of a named session; None for anybody else."""
    found = _PRINCIPAL.fullmatch(identity)
    if found is None or found[4] != "assumed-role":
        return None
    partition, _, account, _, rest = found.groups()
    return f"arn:{partition}:iam::{account}:role/{(rest or '').partition('/')[0]}"


def _name(identity: str) -> str:
    return identity.rsplit("/", 1)[-1].casefold()


def may(person: Person, patterns: Iterable[str]) -> bool:
    """Return whether any pattern matches the person's user, role or named session. No pattern allows nobody.

    Example:
        >>> may(person_of("arn:aws:iam::111122223333:user/people/ana"), ["arn:aws:iam::111122223333:user/a*"])
        True
    """
    return any(matches_principal(pattern, name) for pattern in patterns for name in person.names)


def require_patterns(name: str, patterns: Iterable[str]) -> tuple[str, ...]:
    """Return the patterns of a stack parameter, blanks left out.

    Raises InvalidRequestError for more than 50, for one of more than 300 characters, for one that is not the ARN of a
    user, a role or a role's session (`*` stands for any characters), and for a `*` in a name after a path, which would
    name users or roles of other paths, too. The names of IAM Identity Center's roles are nobody else's.

    Example:
        >>> require_patterns("Approvers", ["arn:aws:iam::111122223333:role/leads/Lead"])
        ('arn:aws:iam::111122223333:role/leads/Lead',)
    """
    given = tuple(stripped for text in patterns if (stripped := text.strip()))
    if len(given) > MAX_PATTERNS:
        raise InvalidRequestError(f"{name} has {len(given)} patterns; {MAX_PATTERNS} are the most")
    for pattern in given:
        parsed = _PATTERN.fullmatch(pattern)
        if len(pattern) > MAX_PATTERN or parsed is None:
            raise InvalidRequestError(
                f"{name}: {pattern[:MAX_PATTERN]!r} is not an ARN of a user, a role or a role's session, such as "
                "arn:aws:iam::111122223333:role/Approvers or arn:aws:iam::111122223333:user/*"
            )
        names = _names(parsed)
        has_path = parsed[5] != "/".join(names)
        if has_path and "*" in "".join(names) and not names[0].startswith(IDENTITY_CENTER):
            raise InvalidRequestError(
                f"{name}: {pattern!r} has a path and a * in its name, and paths are not compared: it would name users "
                "or roles of every path; give each whole name, or a pattern without a path"
            )
    return given


def _names(parsed: re.Match[str]) -> list[str]:
    """Return the name of the user or role of a pattern or ARN, and of the session; the path is left out."""
    return parsed[5].split("/")[-2 if parsed[4] == "assumed-role" else -1 :]


def matches_principal(pattern: str, arn: str) -> bool:
    """Return whether a pattern matches the ARN of a user, role or session; paths are left out, `*` stays in its part.

    Example:
        >>> matches_principal("arn:aws:iam::111122223333:role/aws-reserved/sso.amazonaws.com/AWSReservedSSO_Lead_*",
        ...                   "arn:aws:iam::111122223333:role/AWSReservedSSO_Lead_0123456789abcdef")
        True
    """
    wanted, given = _PATTERN.fullmatch(pattern), _PATTERN.fullmatch(arn)
    if wanted is None or given is None or len(pattern) > MAX_PATTERN:
        return False
    if wanted[4] != given[4] or any(
        w not in {"*", g} for w, g in zip(wanted.groups()[:3], given.groups()[:3], strict=True)
    ):
        return False
    names, wanted_names = _names(given), _names(wanted)
    return len(names) == len(wanted_names) and all(map(_matches, wanted_names, names))


def _matches(pattern: str, text: str) -> bool:
    """Match `*` in linear time: the parts between stars follow each other, the earliest place is the best one."""
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    if not text.startswith(first):
        return False
    *middle, last = rest
    at = len(first)
    for part in middle:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - at >= len(last) and text.endswith(last)
