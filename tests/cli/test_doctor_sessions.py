"""`taskgov doctor`: whether two sessions of one role could count as two persons."""

import json
from typing import Any

import pytest

from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.doctor.facts import DeployedStack, Names, SessionRoles, TrustedRole, Unknown
from taskgov_cli.doctor.sessions import enforces_session_name, read_session_roles, session_names
from taskgov_embedded.deployable import TEMPLATE
from taskgov_embedded.stack import Stack

ACCOUNT = "111122223333"
LEADS = f"arn:aws:iam::{ACCOUNT}:role/Leads"
NAMES = Names("ml-cluster", "taskgov", "ml-eks", "us-east-1", ACCOUNT)


def trust(condition: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": "sts:AssumeRole", **more}
    return {"Version": "2012-10-17", "Statement": [statement | ({"Condition": condition} if condition else {})]}


def named(operator: str, value: Any) -> dict[str, Any]:
    return {operator: {"sts:RoleSessionName": value}}


OPEN, FIXED = trust(), trust(named("StringEquals", "${aws:username}"))
DENIED = {"Effect": "Deny", "Principal": "*", "Action": "sts:AssumeRole"}


@pytest.mark.parametrize(
    "policy",
    [
        FIXED,
        trust(named("StringLike", ["${aws:username}"])),
        trust(named("StringEquals", "ana")),
        trust(named("StringEquals", "prefix-${aws:PrincipalTag/name}")),
        {"Statement": [*OPEN["Statement"], DENIED | {"Condition": named("StringNotEquals", "${aws:username}")}]},
        trust(Principal={"Service": "lambda.amazonaws.com"}),
        trust(Action="sts:AssumeRoleWithSAML", Principal={"Federated": "arn:aws:iam::111122223333:saml-provider/x"}),
    ],
    ids=["user name", "like", "one name", "tag", "everything else is denied", "service", "SAML"],
)
def test_a_trust_policy_that_leaves_no_choice_enforces_the_name(policy: dict[str, Any]) -> None:
    assert enforces_session_name(policy)


@pytest.mark.parametrize(
    "policy",
    [
        OPEN,
        trust({"Bool": {"aws:MultiFactorAuthPresent": "true"}}),
        trust(named("StringLike", "*")),
        trust(named("StringLike", "${aws:username}*")),
        trust(named("StringEquals", ["ana", "ben"])),
        trust(named("StringNotEquals", "root")),
        {"Statement": [*FIXED["Statement"], *OPEN["Statement"]]},
        trust(Action=["sts:AssumeRole", "sts:AssumeRoleWithSAML"]),
        trust(Action="sts:AssumeRoleWithWebIdentity", Principal={"Federated": "accounts.google.com"}),
        {
            "Statement": [
                *OPEN["Statement"],
                DENIED
                | {"Condition": named("StringNotEquals", "${aws:username}") | {"Bool": {"aws:ViaAWSService": "true"}}},
            ]
        },
        {
            "Statement": [
                *OPEN["Statement"],
                DENIED | {"Principal": {"AWS": LEADS}, "Condition": named("StringNotEquals", "${aws:username}")},
            ]
        },
    ],
)
def test_a_trust_policy_that_leaves_a_choice_enforces_no_name(policy: dict[str, Any]) -> None:
    assert not enforces_session_name(policy)


def judged(*roles: TrustedRole, named_roles: tuple[str, ...] = (LEADS,), unseen: tuple[str, ...] = ()) -> Any:
    return session_names(SessionRoles(named_roles, roles, unseen), NAMES)


def test_a_role_whose_sessions_are_persons_without_an_enforced_name_is_a_failure_that_names_it() -> None:
    found = judged(TrustedRole(LEADS, "/", OPEN))
    assert found.status is Status.FAILED
    assert f"two sessions of one role count as two people: {LEADS}" in found.because
    assert found.fix == ("aws iam get-role --role-name Leads --query Role.AssumeRolePolicyDocument",)


def test_a_role_that_is_not_named_is_one_person_whatever_its_trust_policy_says() -> None:
    assert judged(TrustedRole(LEADS, "/", OPEN), named_roles=()).status is Status.OK


def test_a_role_whose_session_names_are_enforced_is_well() -> None:
    assert judged(TrustedRole(LEADS, "/", FIXED)).status is Status.OK


def test_a_role_that_only_looks_like_one_of_identity_center_is_a_failure() -> None:
    arn = f"arn:aws:iam::{ACCOUNT}:role/AWSReservedSSO_Lead_0123456789abcdef"
    real = TrustedRole(arn, "/aws-reserved/sso.amazonaws.com/eu-west-1/", OPEN)
    assert judged(real).status is Status.OK
    assert judged(TrustedRole(arn, "/", OPEN)).status is Status.FAILED


def test_what_cannot_be_seen_is_said_and_a_failure_goes_before_it() -> None:
    hidden = ("arn:aws:iam::444455556666:role/Leads: it is of account 444455556666",)
    found = judged(TrustedRole(LEADS, "/", FIXED), unseen=hidden)
    assert (found.status, hidden[0] in found.because) == (Status.UNKNOWN, True)
    assert judged(TrustedRole(LEADS, "/", OPEN), unseen=hidden).status is Status.FAILED
    assert session_names(Unknown("nobody looked"), NAMES).status is Status.UNKNOWN


@pytest.fixture(scope="module")
def stack() -> Any:
    leads, session = "arn:aws:iam::*:role/Lead*", f"arn:aws:sts::{ACCOUNT}:assumed-role/Ops/ana"
    elsewhere, user = "arn:aws:iam::444455556666:role/Far", f"arn:aws:iam::{ACCOUNT}:user/ana"
    approvers = f"{leads},{session},{elsewhere},{user}"
    with Stack(TEMPLATE, {"Approvers": approvers, "NamedSessionRoles": LEADS}) as opened:
        iam = opened.client("iam")
        for name, policy in (("Leads", OPEN), ("Leaders", FIXED), ("Ops", OPEN), ("Others", OPEN)):
            iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(policy))
        yield opened


def deployed() -> DeployedStack:
    return DeployedStack("taskgov", "CREATE_COMPLETE", {}, {})


def test_the_roles_of_approvers_are_read_by_name_and_by_pattern(stack: Stack) -> None:
    found = read_session_roles(deployed(), ACCOUNT)
    assert [role.arn.rpartition("/")[2] for role in found.roles] == ["Leaders", "Leads", "Ops"]
    assert found.unseen == ("arn:aws:iam::444455556666:role/Far: it is of account 444455556666",)
    diagnosis = session_names(found, NAMES)
    assert diagnosis.status is Status.FAILED
    assert LEADS in diagnosis.because
    assert "Ops" not in diagnosis.because


def test_where_iam_may_not_be_asked_it_says_what_it_cannot_see(stack: Stack) -> None:
    stack.faults.fail("iam", "GetRole", code="AccessDenied", times=10, message="not you")
    stack.faults.fail("iam", "ListRoles", code="AccessDenied", times=10, message="not you")
    try:
        diagnosis = session_names(read_session_roles(deployed(), ACCOUNT), NAMES)
    finally:
        stack.faults.clear()
    assert diagnosis.status is Status.UNKNOWN
    assert "assumed-role/Ops/ana" in diagnosis.because
    assert "AccessDenied" in diagnosis.because


def test_without_approvers_no_role_is_looked_at() -> None:
    found = session_names(SessionRoles((), ()), NAMES)
    assert (found.status, "no role is named in Approvers" in found.because) == (Status.OK, True)
