"""Decide whether a set of IAM policy statements allows an action, as IAM's evaluation logic does for one account.

An explicit Deny wins, then an Allow; otherwise the answer is no. `aws_requests` calls it for each call of a role; `bus`
for resource policies. Actions and resources are matched with `*` and `?`; a policy variable in a resource, such as
`${aws:PrincipalTag/team}`, stands for what the caller has. Conditions are evaluated with the keys that the caller
has, and an unknown key makes the condition unmet (and is reported, see `Verdict.unknown_keys`). So does
a key with many values in a condition without `ForAnyValue` or `ForAllValues`: AWS does not say what it means.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from taskgov_embedded.iam.reference import has_many_values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


@dataclass(frozen=True, slots=True)
class Grant:
    """One action pattern of one Allow statement of a role: the unit in which permissions are used or not."""

    role: str
    sid: str
    action: str
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One policy statement. `owner` is the role's ARN (or the resource's, for resource policies)."""

    owner: str
    sid: str
    effect: str
    actions: tuple[str, ...]
    not_actions: tuple[str, ...]
    resources: tuple[str, ...]
    not_resources: tuple[str, ...]
    principals: tuple[str, ...]
    conditions: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: what decided it, and which condition keys nobody could supply."""

    allowed: bool
    grants: tuple[Grant, ...] = ()
    denied_by: str | None = None
    unknown_keys: frozenset[str] = field(default_factory=frozenset)


def statements(owner: str, name: str, document: Mapping[str, Any]) -> tuple[Statement, ...]:
    """Return the statements of a policy document; one without a Sid is named after the policy and its place."""
    found = document.get("Statement", [])
    listed = [found] if isinstance(found, dict) else found
    return tuple(
        Statement(
            owner=owner,
            sid=statement.get("Sid") or f"{name}[{place}]",
            effect=statement["Effect"],
            actions=_strings(statement.get("Action")),
            not_actions=_strings(statement.get("NotAction")),
            resources=_strings(statement.get("Resource")),
            not_resources=_strings(statement.get("NotResource")),
            principals=_principals(statement.get("Principal")),
            conditions=statement.get("Condition", {}),
        )
        for place, statement in enumerate(listed)
    )


def evaluate(
    policy: Iterable[Statement],
    action: str,
    resource: str,
    context: Mapping[str, str | Sequence[str]],
    principal: str | None = None,
) -> Verdict:
    """Evaluate `action` on `resource`; `principal` is given for resource policies only.

    >>> document = {"Statement": {"Effect": "Allow", "Action": "s3:Get*", "Resource": "arn:aws:s3:::b/*"}}
    >>> policy = statements("role/r", "p", document)
    >>> evaluate(policy, "s3:GetObject", "arn:aws:s3:::b/k", {}).allowed
    True
    >>> evaluate(policy, "s3:PutObject", "arn:aws:s3:::b/k", {}).allowed
    False
    """
    grants: list[Grant] = []
    unknown: set[str] = set()
    for statement in policy:
        if not _applies(statement, action, resource, context, principal):
            continue
        if not _met(statement.conditions, context, unknown):
            continue
        if statement.effect == "Deny":
            return Verdict(allowed=False, denied_by=statement.sid, unknown_keys=frozenset(unknown))
        grants.extend(_matching_grants(statement, action))
    return Verdict(allowed=bool(grants), grants=tuple(grants), unknown_keys=frozenset(unknown))


def grants_of(policy: Iterable[Statement]) -> tuple[Grant, ...]:
    """Return everything that the policy allows, as grants."""
    return tuple(
        Grant(statement.owner, statement.sid, action, statement.resources)
        for statement in policy
        if statement.effect == "Allow"
        for action in (statement.actions or ("*",))
    )


@lru_cache(maxsize=4096)
def matches(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    """Match IAM's wildcards: `*` any run of characters, `?` any one.

    >>> matches("dynamodb:*Item", "dynamodb:PutItem"), matches("arn:aws:s3:::b", "arn:aws:s3:::bb")
    (True, False)
    """
    expression = "".join(".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.fullmatch(expression, text, re.DOTALL | (re.IGNORECASE if ignore_case else 0)) is not None


def _strings(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(str(text) for text in value)


def _principals(value: Any) -> tuple[str, ...]:
    if value is None or isinstance(value, str):
        return _strings(value)
    return tuple(principal for listed in value.values() for principal in _strings(listed))


def _applies(
    statement: Statement,
    action: str,
    resource: str,
    context: Mapping[str, str | Sequence[str]],
    principal: str | None,
) -> bool:
    if principal is not None and not any(matches(p, principal) for p in statement.principals):
        return False
    if statement.not_actions:
        acted = not any(matches(a, action, ignore_case=True) for a in statement.not_actions)
    else:
        acted = any(matches(a, action, ignore_case=True) for a in statement.actions)
    if statement.not_resources:
        return acted and not any(matches(r, resource) for r in _filled_in(statement.not_resources, context))
    return acted and (
        principal is not None or any(matches(r, resource) for r in _filled_in(statement.resources, context))
    )


_VARIABLE = re.compile(r"\$\{([^}]+)\}")


def _filled_in(patterns: Iterable[str], context: Mapping[str, str | Sequence[str]]) -> Iterator[str]:
    """Return the patterns with their policy variables replaced; one with an unknown variable matches nothing.

    >>> list(_filled_in(["a/${aws:PrincipalTag/team}", "b/${x}", "c"], {"aws:PrincipalTag/team": "nlp"}))
    ['a/nlp', 'c']
    """
    known = {key.lower(): value for key, value in context.items() if isinstance(value, str)}
    for pattern in patterns:
        values = {name: known.get(name.lower(), "*") for name in _VARIABLE.findall(pattern)}
        if not any({"*", "?"} & set(value) for value in values.values()):  # a value is never a wildcard
            yield _VARIABLE.sub(lambda found: values[found[1]], pattern)  # noqa: B023 - used at once


def _matching_grants(statement: Statement, action: str) -> list[Grant]:
    patterns = [a for a in statement.actions if matches(a, action, ignore_case=True)] or ["*"]
    return [Grant(statement.owner, statement.sid, pattern, statement.resources) for pattern in patterns]


_TESTS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda have, want: have == want,
    "StringEqualsIgnoreCase": lambda have, want: have.lower() == want.lower(),
    "StringLike": lambda have, want: matches(want, have),
    "ArnEquals": lambda have, want: matches(want, have),
    "ArnLike": lambda have, want: matches(want, have),
    "Bool": lambda have, want: have.lower() == want.lower(),
    "NumericEquals": lambda have, want: float(have) == float(want),
    "NumericLessThanEquals": lambda have, want: float(have) <= float(want),
    "NumericGreaterThanEquals": lambda have, want: float(have) >= float(want),
    "IpAddress": lambda have, want: ipaddress.ip_address(have) in ipaddress.ip_network(want),
}


def _met(
    conditions: Mapping[str, Mapping[str, Any]], context: Mapping[str, str | Sequence[str]], unknown: set[str]
) -> bool:
    known = {key.lower(): value for key, value in context.items()}
    return all(
        _holds(operator, key, _strings(_text(wanted)), known, unknown)
        for operator, keys in conditions.items()
        for key, wanted in keys.items()
    )


def _text(value: Any) -> Any:
    return (
        str(value).lower()
        if isinstance(value, bool)
        else [str(v) for v in value]
        if isinstance(value, list)
        else str(value)
    )


def _holds(
    operator: str,
    key: str,
    wanted: tuple[str, ...],
    known: Mapping[str, str | Sequence[str]],
    unknown: set[str],
) -> bool:
    quantifier, _, plain = operator.rpartition(":")
    optional = plain.endswith("IfExists")
    plain = plain.removesuffix("IfExists")
    have = known.get(key.lower())
    if plain == "Null":
        return (have is None) == (wanted[0] == "true")
    negated = "Not" in plain
    if have is None:
        unknown.add(key)
        return optional or negated or quantifier == "ForAllValues"
    test = _TESTS.get(plain.replace("Not", ""))
    if test is None or (has_many_values(key) and not quantifier):
        unknown.add(f"{operator} {key}")
        return False
    results = [any(test(text, want) for want in wanted) != negated for text in _strings(have)]
    return all(results) if quantifier == "ForAllValues" else any(results)
