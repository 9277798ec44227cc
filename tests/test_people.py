"""Who is behind a caller, which callers are one person, and which callers a stack's patterns name."""

import time

import pytest

from taskgov.errors import InvalidRequestError
from taskgov.people import is_same_person, matches_principal, may, person_of, require_patterns

ACCOUNT = "111122223333"
NAMED = [f"arn:aws:iam::{ACCOUNT}:role/Named*", f"arn:aws-cn:iam::{ACCOUNT}:role/Named"]
SSO = "AWSReservedSSO_Lead_0123456789abcdef"


def session(role: str, name: str, partition: str = "aws") -> str:
    return f"arn:{partition}:sts::{ACCOUNT}:assumed-role/{role}/{name}"


PERSONS = {
    "a user": (f"arn:aws:iam::{ACCOUNT}:user/ana", f"arn:aws:iam::{ACCOUNT}:user/ana"),
    "a user with a path": (f"arn:aws:iam::{ACCOUNT}:user/people/ml/ana", f"arn:aws:iam::{ACCOUNT}:user/ana"),
    "a user in China": (f"arn:aws-cn:iam::{ACCOUNT}:user/ana", f"arn:aws-cn:iam::{ACCOUNT}:user/ana"),
    "the root of an account": (f"arn:aws:iam::{ACCOUNT}:root", f"arn:aws:iam::{ACCOUNT}:root"),
    "a session of any role is the role": (session("Ops", "ana"), f"arn:aws:iam::{ACCOUNT}:role/Ops"),
    "and so is another one": (session("Ops", "ben"), f"arn:aws:iam::{ACCOUNT}:role/Ops"),
    "a session in GovCloud": (session("Ops", "ana", "aws-us-gov"), f"arn:aws-us-gov:iam::{ACCOUNT}:role/Ops"),
    "a session of an isolated partition": (
        session("Ops", "i", "aws-iso-b") + "x",
        f"arn:aws-iso-b:iam::{ACCOUNT}:role/Ops",
    ),
    "a session whose name is enforced": (session("NamedOps", "ana"), session("NamedOps", "ana")),
    "the same in China": (session("Named", "ana", "aws-cn"), session("Named", "ana", "aws-cn")),
    "a user of Identity Center": (session(SSO, "Ana@example.com"), "identity-center/ana@example.com"),
    "with another permission set": (
        session("AWSReservedSSO_View_f" + "0" * 15, "ana@example.com"),
        "identity-center/ana@example.com",
    ),
    "a role that only looks like it": (
        session("MyAWSReservedSSO_x", "ana"),
        f"arn:aws:iam::{ACCOUNT}:role/MyAWSReservedSSO_x",
    ),
}


@pytest.mark.parametrize(("caller", "identity"), PERSONS.values(), ids=PERSONS)
def test_the_person_behind_a_caller(caller: str, identity: str) -> None:
    person = person_of(caller, NAMED)
    assert (person.identity, person.arn) == (identity, caller)


NOBODY = {
    "a federated user, whose name is chosen": f"arn:aws:sts::{ACCOUNT}:federated-user/ana",
    "a service": "arn:aws:iam::aws:role/x",
    "a role, which calls by a session": f"arn:aws:iam::{ACCOUNT}:role/Ops",
    "a session without a name": f"arn:aws:sts::{ACCOUNT}:assumed-role/Ops",
    "a session of two names": f"arn:aws:sts::{ACCOUNT}:assumed-role/Ops/ana/ben",
    "a user without a name": f"arn:aws:iam::{ACCOUNT}:user/",
    "a root with a name": f"arn:aws:iam::{ACCOUNT}:root/ana",
    "another partition's form": f"arn:evil:iam::{ACCOUNT}:user/ana",
    "a short account": "arn:aws:iam::1111:user/ana",
    "a second line": f"arn:aws:iam::{ACCOUNT}:user/ana\narn:aws:iam::{ACCOUNT}:user/ben",
    "control characters": session("Ops", "a\x1b[31m"),
    "nothing": "",
    "free text": "ana",
}


@pytest.mark.parametrize("caller", NOBODY.values(), ids=NOBODY)
def test_who_is_no_person_gives_no_orders(caller: str) -> None:
    with pytest.raises(InvalidRequestError, match="caller "):
        person_of(caller, NAMED)


SAME = {
    "itself": (f"arn:aws:iam::{ACCOUNT}:user/ana", f"arn:aws:iam::{ACCOUNT}:user/ana", True),
    "another user": (f"arn:aws:iam::{ACCOUNT}:user/ana", f"arn:aws:iam::{ACCOUNT}:user/ben", False),
    "the user as a user of Identity Center": (f"arn:aws:iam::{ACCOUNT}:user/Ana", "identity-center/ana", True),
    "the user in a named session": (f"arn:aws:iam::{ACCOUNT}:user/ana", session("NamedOps", "ana"), True),
    "another named session": (session("NamedOps", "ana"), session("NamedOps", "ben"), False),
    "another role": (f"arn:aws:iam::{ACCOUNT}:role/Ops", f"arn:aws:iam::{ACCOUNT}:role/Leads", False),
    "a user of that name elsewhere": (f"arn:aws:iam::{ACCOUNT}:user/ana", "arn:aws:iam::444455556666:user/ana", True),
}


@pytest.mark.parametrize(("one", "other", "want"), SAME.values(), ids=SAME)
def test_who_may_be_one_person_with_whom(one: str, other: str, want: bool) -> None:
    assert is_same_person(one, other) is want
    assert is_same_person(other, one) is want


MATCHES = {
    "a role": (f"arn:aws:iam::{ACCOUNT}:role/Ops", session("Ops", "ana"), True),
    "a role with a path, which a session does not show": (
        f"arn:aws:iam::{ACCOUNT}:role/ml/Ops",
        session("Ops", "ana"),
        True,
    ),
    "another role": (f"arn:aws:iam::{ACCOUNT}:role/Ops", session("Ops2", "ana"), False),
    "roles by a star": (f"arn:aws:iam::{ACCOUNT}:role/Ops-*", session("Ops-eu", "ana"), True),
    "a star alone is any role": (f"arn:aws:iam::{ACCOUNT}:role/*", session("Ops", "ana"), True),
    "any role is no user": (f"arn:aws:iam::{ACCOUNT}:role/*", f"arn:aws:iam::{ACCOUNT}:user/Ops", False),
    "another account": ("arn:aws:iam::444455556666:role/Ops", session("Ops", "ana"), False),
    "any account": ("arn:aws:iam::*:role/Ops", session("Ops", "ana"), True),
    "a permission set": (
        f"arn:aws:iam::{ACCOUNT}:role/aws-reserved/sso.amazonaws.com/eu-west-1/AWSReservedSSO_Lead_*",
        session(SSO, "ana"),
        True,
    ),
    "one user of a permission set": (session("AWSReservedSSO_Lead_*", "ana"), session(SSO, "ana"), True),
    "another user of it": (session("AWSReservedSSO_Lead_*", "ana"), session(SSO, "ben"), False),
    "a named session": (session("NamedOps", "ana"), session("NamedOps", "ana"), True),
    "a session whose name nobody enforces": (session("Ops", "ana"), session("Ops", "ana"), False),
    "stars do not reach into the session": (session("Named*", "ben"), session("NamedOps", "ana"), False),
    "a user by a star": (f"arn:aws:iam::{ACCOUNT}:user/a*a", f"arn:aws:iam::{ACCOUNT}:user/people/ana", True),
    "parts of a star pattern do not overlap": (
        f"arn:aws:iam::{ACCOUNT}:user/an*na",
        f"arn:aws:iam::{ACCOUNT}:user/ana",
        False,
    ),
    "the root matches nothing": (f"arn:aws:iam::{ACCOUNT}:user/*", f"arn:aws:iam::{ACCOUNT}:root", False),
}


@pytest.mark.parametrize(("pattern", "caller", "want"), MATCHES.values(), ids=MATCHES)
def test_whom_a_pattern_names(pattern: str, caller: str, want: bool) -> None:
    assert may(person_of(caller, NAMED), require_patterns("Approvers", [pattern])) is want


def test_no_pattern_names_nobody() -> None:
    assert not may(person_of(f"arn:aws:iam::{ACCOUNT}:user/ana"), [])


@pytest.mark.parametrize(
    "pattern", ["*", "ana", "arn:aws:iam::111122223333:group/x", f"arn:aws:iam::{ACCOUNT}:role/{'a' * 300}"]
)
def test_what_is_no_pattern_of_a_principal_is_refused_with_its_parameter(pattern: str) -> None:
    with pytest.raises(InvalidRequestError, match="Approvers: "):
        require_patterns("Approvers", ["", pattern])


@pytest.mark.parametrize(
    "rest",
    [
        "role/leads/*",
        "role/leads/Lead-*",
        "role/aws-reserved/sso.amazonaws.com/*",
        "user/leads/*",
        "role/*/*",
        "assumed-role/leads/Lead*/ana",
    ],
)
def test_a_star_in_a_name_after_a_path_is_refused_since_paths_are_not_compared(rest: str) -> None:
    with pytest.raises(InvalidRequestError, match=r"Approvers: .* has a path and a \* in its name"):
        require_patterns("Approvers", [f"arn:aws:iam::{ACCOUNT}:{rest}"])


def test_there_is_a_most_of_patterns() -> None:
    with pytest.raises(InvalidRequestError, match="51 patterns; 50 are the most"):
        require_patterns("Approvers", [f"arn:aws:iam::{ACCOUNT}:role/x"] * 51)


def test_a_pattern_full_of_stars_is_matched_at_once() -> None:
    pattern, arn = f"arn:aws:iam::{ACCOUNT}:role/{'*a' * 120}b", f"arn:aws:iam::{ACCOUNT}:role/{'a' * 250}"
    began = time.perf_counter()
    assert not matches_principal(pattern, arn)
    assert time.perf_counter() - began < 0.1
