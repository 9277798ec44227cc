"""What a smoke test reports can be shown to strangers: forms, codes and times, and nobody's name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov_cli.smoke import report
from taskgov_cli.smoke.model import Sandbox
from taskgov_cli.smoke.redaction import PRIVATE, Redaction, identity_words

EVENTS = Path(__file__).parents[2] / "events"
WORDS = {"maria": "USER", "PlatformAdmin": "USER", "ml-cluster": "CLUSTER", "444455556666": "111122223333"}
REDACTION = Redaction.of(WORDS)
TEXTS = {
    "an ARN": (
        "arn:aws-cn:sagemaker:cn-north-1:444455556666:cluster/abcdefghijkl is gone",
        "arn:aws-cn:sagemaker:cn-north-1:111122223333:cluster/REDACTED is gone",
    ),
    "an ARN of a bucket": ("arn:aws:s3:::my-bucket/key", "arn:aws:s3:::REDACTED"),
    "the ARN of a session": (
        "denied to arn:aws:sts::444455556666:assumed-role/Other/joe",
        "denied to arn:aws:sts::111122223333:assumed-role/REDACTED",
    ),
    "a name": ("Cluster ml-cluster of maria", "Cluster CLUSTER of USER"),
    "a part of a longer word": ("marianne", "marianne"),
    "an account beside": ("account 777788889999", "account 111122223333"),
    "a key": ("AKIAIOSFODNN7EXAMPLE and ASIAIOSFODNN7EXAMPLE", "REDACTED and REDACTED"),
    "a session's principal": ("AROAEXAMPLEID:joe", "REDACTED"),
    "addresses": ("from 203.0.113.7", "from 192.0.2.1"),
    "an address of version 6": ("from 2001:db8:0:0:0:0:2:1", "from 2001:db8::1"),
    "mail": ("mail to joe@corp.example.org", "mail to somebody@example.com"),
    "an instance": ("node i-0123456789abcdef0", "node i-REDACTED"),
    "a sentence of ours": ("the quota has 1 ml.g5.8xlarge, weight 10", "the quota has 1 ml.g5.8xlarge, weight 10"),
}


@pytest.mark.parametrize(("text", "want"), TEXTS.values(), ids=TEXTS)
def test_a_text_keeps_its_form_and_loses_what_is_private(text: str, want: str) -> None:
    assert REDACTION.text(text) == want
    assert REDACTION.text(want) == want


def test_a_cloudtrail_event_keeps_every_member_and_says_nobodys_name() -> None:
    event = json.loads((EVENTS / "cloudtrail_update_compute_quota.json").read_text())
    redacted = REDACTION.data(event)
    assert members(redacted) == members(event)
    text = json.dumps(redacted)
    assert not [word for word in (*WORDS, "192.0.2.10", "f3b0e0d8", "AROAEXAMPLE") if word in text]
    detail = redacted["detail"]
    assert (detail["eventName"], detail["requestParameters"]["targetVersion"]) == ("UpdateComputeQuota", 3)
    assert detail["userAgent"] == "aws-cli/2.31.0"


def test_a_service_that_called_stays_since_it_shows_who_did() -> None:
    event = {"sourceIPAddress": "cloudformation.amazonaws.com", "userIdentity": {"userName": "x", "accountId": "y"}}
    assert REDACTION.data(event) == {
        "sourceIPAddress": "cloudformation.amazonaws.com",
        "userIdentity": {"userName": "REDACTED", "accountId": "111122223333"},
    }


def test_who_stands_behind_a_session_of_identity_center_is_not_said() -> None:
    event = {"sessionContext": {"sourceIdentity": "joe"}, "onBehalfOf": {"userId": "94d9-joe", "identityStoreArn": "x"}}
    assert "joe" not in json.dumps(REDACTION.data(event))


def test_folders_and_buckets_that_sam_names_are_not_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/maria.k")
    monkeypatch.chdir(tmp_path)
    none: Any = None
    place: dict[str, Any] = dict.fromkeys(("account", "cluster", "cluster_arn", "eks", "instance_type", "folder"), "")
    sandbox = Sandbox(run_id="r", deployer=none, type_=none, retained={"GovernanceBucket": "stack-bucket-1x"}, **place)
    text = f"/home/maria.k/.aws and {tmp_path}/build/x.log: stack-bucket-1x is not empty"
    want = "FOLDER/.aws and FOLDER/build/x.log: REDACTED is not empty"
    assert report._redaction(sandbox, "arn:aws:iam::111122223333:user/joe").text(text) == want


@given(
    st.recursive(
        st.sampled_from([*WORDS, "x"]) | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*PRIVATE, "a", *WORDS]), inner),
        max_leaves=12,
    )
)
def test_no_private_word_stays_wherever_it_stands(data: object) -> None:
    text = json.dumps(REDACTION.data(data))
    assert not [word for word in WORDS if word in text]


def test_the_words_of_a_caller_are_those_that_name_somebody() -> None:
    assert list(identity_words("arn:aws:iam::111122223333:user/team/ana")) == ["team", "ana"]
    assert list(identity_words("arn:aws:iam::111122223333:root")) == []


def members(value: object) -> object:
    if isinstance(value, dict):
        return {name: members(item) for name, item in value.items()}
    return [members(item) for item in value] if isinstance(value, list) else None
