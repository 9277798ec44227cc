"""Whether two sessions of one role could count as two persons: the trust policies of the roles that may approve.

A session is a person of its own in two cases (`taskgov.people`): its role matches `NamedSessionRoles`, or is one of IAM
Identity Center's. For the first the trust policy has to enforce `sts:RoleSessionName`; without that, who may assume
the role chooses a name, and approves his own document under another one.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from taskgov.adapters.errors import translated
from taskgov.people import IDENTITY_CENTER, matches_principal
from taskgov_cli.doctor.diagnosis import Diagnosis, failed, ok, unknown
from taskgov_cli.doctor.facts import SessionRoles, TrustedRole, Unknown
from taskgov_cli.doctor.reading_aws import client, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_cli.doctor.facts import DeployedStack, Names, Read

CHECK: Final = "session-names"
IDENTITY_CENTER_PATH: Final = "/aws-reserved/sso.amazonaws.com/"
"""Only IAM Identity Center creates roles under it."""
_VARIABLE: Final = re.compile(r"\$\{[^}]*\}")


def read_session_roles(stack: DeployedStack, account: str) -> SessionRoles:
    """Read the roles that the stack's parameters name; with `iam:GetRole`, and `iam:ListRoles` for a pattern.

    Raises GovernanceError when the parameters cannot be read; a role that cannot be is `unseen`.
    """
    with translated(f"describe stack {stack.name}"):
        found = client("cloudformation").describe_stacks(StackName=stack.name)["Stacks"][0].get("Parameters", ())
    given = {parameter["ParameterKey"]: parameter.get("ParameterValue", "") for parameter in found}
    approvers, named = (_listed(given.get(name, "")) for name in ("Approvers", "NamedSessionRoles"))
    if not approvers:
        return SessionRoles(named, ())
    roles, unseen = dict[str, TrustedRole](), list[str]()
    for pattern in dict.fromkeys((*approvers, *named)):
        wanted = _role_of(pattern)
        if wanted is None:
            continue
        of_account = wanted.split(":")[4]
        if of_account not in {account, "*"}:
            unseen.append(f"{pattern}: it is of account {of_account}")
            continue
        seen = read(partial(_roles_like, wanted))
        if isinstance(seen, Unknown):
            unseen.append(f"{pattern}: {seen.reason}")
        else:
            roles |= {role.arn: role for role in seen}
    return SessionRoles(named, tuple(roles[arn] for arn in sorted(roles)), tuple(unseen))


def _listed(parameter: str) -> tuple[str, ...]:
    return tuple(stripped for part in parameter.split(",") if (stripped := part.strip()))


def _role_of(pattern: str) -> str | None:
    """Return the pattern of the role that a pattern of a principal names; None for a user.

    >>> _role_of("arn:aws:sts::111122223333:assumed-role/Approvers/ana")
    'arn:aws:iam::111122223333:role/Approvers'
    """
    head, _, rest = pattern.partition("/")
    if head.endswith(":role"):
        return pattern
    if not head.endswith(":assumed-role"):
        return None
    return f"{head.removesuffix(':assumed-role').replace(':sts:', ':iam:')}:role/{rest.partition('/')[0]}"


def _roles_like(pattern: str) -> tuple[TrustedRole, ...]:
    iam, name = client("iam"), pattern.rpartition("/")[2]
    if "*" not in name:
        with translated(f"read the trust policy of role {name}"):
            return (_trusted(iam.get_role(RoleName=name)["Role"]),)
    with translated(f"list the roles like {pattern}"):
        listed = [role for page in iam.get_paginator("list_roles").paginate() for role in page["Roles"]]
    return tuple(_trusted(role) for role in listed if matches_principal(pattern, role["Arn"]))


def _trusted(found: Mapping[str, Any]) -> TrustedRole:
    return TrustedRole(found["Arn"], found["Path"], found.get("AssumeRolePolicyDocument", {}))


def session_names(found: Read[SessionRoles], names: Names) -> Diagnosis:
    """Check that no role that may approve gives one person several names."""
    if isinstance(found, Unknown):
        return unknown(CHECK, found.reason)
    several = [(role, why) for role in found.roles if (why := _several_names(role, found.named))]
    if several:
        said = "; ".join(f"{role.arn}: {why}" for role, why in several)
        look = [
            f"aws iam get-role --role-name {role.arn.rpartition('/')[2]} --query Role.AssumeRolePolicyDocument"
            for role, _ in several
        ]
        note = (
            'Give each statement that lets people assume it the condition {"StringEquals": {"sts:RoleSessionName": '
            '"${aws:username}"}} (aws iam update-assume-role-policy), or take the role out of NamedSessionRoles.'
        )
        return failed(CHECK, f"two sessions of one role count as two people: {said}", *look, note=note)
    if found.unseen:
        return unknown(CHECK, f"cannot see {'; '.join(found.unseen)}", note="iam:GetRole and iam:ListRoles read roles.")
    if not found.roles:
        return ok(CHECK, f"no role is named in Approvers of stack {names.stack}")
    return ok(CHECK, f"{len(found.roles)} roles: sessions of one role are one person, or their names are enforced")


def _several_names(role: TrustedRole, named: tuple[str, ...]) -> str:
    """Say why sessions of the role count as persons though nobody enforces their names; empty when that is not so."""
    if role.arn.rpartition("/")[2].startswith(IDENTITY_CENTER):
        if role.path.startswith(IDENTITY_CENTER_PATH):
            return ""
        return f"its name is like one of IAM Identity Center's, and its path is {role.path}"
    if not any(matches_principal(pattern, role.arn) for pattern in named) or enforces_session_name(role.trust):
        return ""
    return "NamedSessionRoles names it, and its trust policy does not enforce sts:RoleSessionName"


def enforces_session_name(trust: Mapping[str, Any]) -> bool:
    """Return whether a trust policy leaves nobody a choice of the session's name.

    Every statement that lets people assume the role fixes the name to one value (`${aws:username}`, or one name), or
    one statement denies every other name to everybody. The name of a SAML session is the identity provider's.

    >>> enforces_session_name({"Statement": {"Effect": "Allow", "Principal": {"AWS": "111122223333"},
    ...     "Action": "sts:AssumeRole", "Condition": {"StringEquals": {"sts:RoleSessionName": "${aws:username}"}}}})
    True
    """
    statements = _as_list(trust.get("Statement"))
    if any(_denies_other_names(statement) for statement in statements):
        return True
    return all(
        _fixes_the_name(statement, ("StringEquals", "StringLike"))
        for statement in statements
        if _lets_people_in(statement)
    )


def _denies_other_names(statement: Mapping[str, Any]) -> bool:
    everybody = statement.get("Principal") in ("*", {"AWS": "*"}, {"AWS": ["*"]})
    denies = statement["Effect"] == "Deny" and bool(_ASSUMING & set(_as_list(statement.get("Action"))))
    conditions = statement.get("Condition", {})
    return everybody and denies and len(conditions) == 1 and _fixes_the_name(statement, _NEGATED)


_ASSUMING: Final = frozenset({"sts:AssumeRole", "sts:*", "sts:Assume*", "sts:AssumeRole*", "*"})
_WITHOUT_A_CHOICE: Final = frozenset({"sts:AssumeRoleWithSAML", "sts:TagSession", "sts:SetSourceIdentity"})
_NEGATED: Final = ("StringNotEquals", "StringNotLike")


def _lets_people_in(statement: Mapping[str, Any]) -> bool:
    """Leave out services, which name their sessions themselves, and SAML alone, whose provider names them."""
    principal = statement.get("Principal", "*")
    of_services = isinstance(principal, dict) and set(principal) == {"Service"}
    actions = set(_as_list(statement.get("Action", "*")))
    return statement["Effect"] == "Allow" and not of_services and bool(actions - _WITHOUT_A_CHOICE)


def _fixes_the_name(statement: Mapping[str, Any], operators: tuple[str, ...]) -> bool:
    return any(
        _is_one_name(_as_list(value))
        for operator, keys in statement.get("Condition", {}).items()
        if operator in operators
        for key, value in keys.items()
        if key.lower() == "sts:rolesessionname"
    )


def _is_one_name(values: list[Any]) -> bool:
    return len(values) == 1 and not set("*?") & set(_VARIABLE.sub("", str(values[0])))


def _as_list(value: Any) -> list[Any]:
    return [] if value is None else value if isinstance(value, list) else [value]
