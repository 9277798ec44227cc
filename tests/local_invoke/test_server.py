"""The account that `taskgov local` serves: what it holds, and that other processes are answered as this one is."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import botocore.credentials as keys_of_botocore
import pytest
import urllib3
from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.httpsession import URLLib3Session
from kubernetes import client as kubernetes

from taskgov.adapters.kubernetes import EksConnections
from taskgov.allocation.codec import plan_from_json, plan_to_store
from taskgov.allocation.planner import plan_quotas
from taskgov.ports import ClusterAccess
from taskgov.services.take_snapshot import cluster_facts
from taskgov.snapshot.codec import snapshot_from_json, snapshot_to_store
from taskgov_cli import local
from taskgov_cli.local import described
from taskgov_embedded.server.account import LocalAccount
from taskgov_embedded.server.http_server import StackServer
from tests.support.golden import assert_golden

if TYPE_CHECKING:
    from collections.abc import Iterator

    from botocore.awsrequest import AWSPreparedRequest

    from taskgov_embedded.iam.identity import Credentials

EVENTS = Path(__file__).parents[2] / "events"
BRIDGE = "http://172.17.0.1:4566"
"""Where `taskgov local` is found on Docker's default bridge."""


NOWHERE = "http://127.0.0.1:9"
SETTINGS_OF_A_PERSON = f"""
[default]
region = eu-north-1
endpoint_url = {NOWHERE}
services = elsewhere
[services elsewhere]
sqs =
  endpoint_url = {NOWHERE}
"""


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAccount]:
    """Open the account where a person works with other accounts: with a profile, an endpoint, keys and files."""
    home = tmp_path_factory.mktemp("home")
    (home / ".aws").mkdir()
    (home / ".aws" / "config").write_text(SETTINGS_OF_A_PERSON)
    hostile = {
        "HOME": str(home),
        "AWS_PROFILE": "work",
        "AWS_ENDPOINT_URL": NOWHERE,
        "AWS_ENDPOINT_URL_S3": NOWHERE,
        "AWS_REGION": "eu-north-1",
        "AWS_SESSION_TOKEN": "of-another-account",
        "AWS_CONFIG_FILE": str(home / ".aws" / "config"),
        "AWS_CA_BUNDLE": str(home / "none.pem"),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pwd, "getpwuid", lambda _uid: SimpleNamespace(pw_dir=str(home)))  # functions have no HOME
        for name, value in hostile.items():
            patch.setenv(name, value)
        with LocalAccount() as opened:
            yield opened
        assert {name: os.environ.get(name) for name in hostile} == hostile


@pytest.fixture(scope="module")
def server(account: LocalAccount) -> Iterator[StackServer]:
    with StackServer(account.stack, ["127.0.0.1"]) as opened:
        yield opened


def over_http(service: str, server: StackServer, keys: Credentials | None = None) -> Any:
    """Return a client that goes through a socket: what answers calls of this process is out of its way."""
    session = boto3.Session()
    made = session.client(  # type: ignore[call-overload]  # any service
        service,
        region_name="us-east-1",
        endpoint_url=server.url,
        aws_access_key_id=keys.access_key if keys else "somebody",
        aws_secret_access_key="any",
        aws_session_token=keys.token if keys else None,
        config=Config(retries={"total_max_attempts": 1}),
    )
    sender = URLLib3Session(timeout=20)

    def send(request: AWSPreparedRequest, **_about: Any) -> Any:
        return sender.send(request)

    made.meta.events.register_first("before-send", send)
    return made


def test_the_stored_documents_are_as_the_code_writes_them_now(account: LocalAccount) -> None:
    """With TASKGOV_UPDATE_GOLDEN=1 the snapshot learns what it is to know of the cluster, and all that follows it."""
    before = {name: (EVENTS / "local" / f"{name}.json").read_bytes() for name in ("snapshot", "plan")}
    described = account.stack.client("sagemaker").describe_cluster(ClusterName="ml-cluster")
    stored = replace(snapshot_from_json(before["snapshot"]), cluster=cluster_facts(described))
    after = {"snapshot": snapshot_to_store(stored), "plan": plan_to_store(plan_quotas(stored, mode="plan"))}
    for name, body in after.items():
        assert_golden(EVENTS / "local" / f"{name}.json", body.decode())
        for file in sorted(EVENTS.glob("*.json")):
            digests = hashlib.sha256(before[name]).hexdigest(), hashlib.sha256(body).hexdigest()
            assert_golden(file, file.read_text().replace(*digests))


def test_the_account_has_what_the_doctor_looks_for(account: LocalAccount) -> None:
    trails = account.stack.client("cloudtrail")
    assert [
        trails.get_trail_status(Name=one["Name"])["IsLogging"] for one in trails.describe_trails()["trailList"]
    ] == [True]
    topic = account.stack.outputs["NoticeTopicArn"]
    (told,) = account.stack.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
    assert told["SubscriptionArn"].startswith("arn:")
    assert account.stack.outputs["ApplyMode"] == "plan"


def test_the_samples_name_documents_that_are_there(account: LocalAccount) -> None:
    s3, bucket = account.stack.client("s3"), account.stack.physical("GovernanceBucket")
    pointers = [
        pointer
        for file in sorted(EVENTS.glob("*.json"))
        for name, pointer in json.loads(file.read_text()).items()
        if name in {"plan", "snapshot"}
    ]
    assert len(pointers) == 5
    for pointer in pointers:
        body = s3.get_object(Bucket=pointer["bucket"], Key=pointer["key"])["Body"].read()
        assert pointer["bucket"] == bucket
        assert hashlib.sha256(body).hexdigest() == pointer["sha256"]


def test_the_stored_plan_is_about_what_the_account_holds(account: LocalAccount) -> None:
    plan = plan_from_json((EVENTS / "local" / "plan.json").read_bytes())
    snapshot = snapshot_from_json((EVENTS / "local" / "snapshot.json").read_bytes())
    held = {quota["ComputeQuotaId"]: quota["ComputeQuotaVersion"] for quota in quotas_of(account)}
    named = {change.resource_id: change.target_version for change in plan.changes if change.resource_id}
    assert snapshot.cluster.name == plan.cluster_name == "ml-cluster"
    assert plan.cluster_arn == account.cluster_arn
    assert named == held


def quotas_of(account: LocalAccount) -> list[dict[str, Any]]:
    return account.stack.sagemaker.quotas(account.cluster_arn)


def test_the_variables_for_sam_are_those_of_the_account(account: LocalAccount) -> None:
    variables = {name: account.environment(name) | {"AWS_ENDPOINT_URL": BRIDGE} for name in account.functions()}
    assert_golden(EVENTS / "env.json", json.dumps(variables, indent=2) + "\n")


def test_what_one_process_writes_another_one_reads(account: LocalAccount, server: StackServer) -> None:
    s3, bucket = over_http("s3", server), account.stack.physical("GovernanceBucket")
    s3.put_object(Bucket=bucket, Key="notes/a b.txt", Body=b"over http")
    assert account.stack.client("s3").get_object(Bucket=bucket, Key="notes/a b.txt")["Body"].read() == b"over http"
    assert s3.get_object(Bucket=bucket, Key="notes/a b.txt")["Body"].read() == b"over http"
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket=bucket, Key="notes/none")


def test_governance_calls_are_answered_by_the_stack_itself(account: LocalAccount, server: StackServer) -> None:
    answer = over_http("sagemaker", server).list_compute_quotas(ClusterArn=account.cluster_arn)
    assert [quota["Name"] for quota in answer["ComputeQuotaSummaries"]] == ["team-a-quota", "team-b-quota"]


def test_a_functions_key_may_do_what_its_role_may(account: LocalAccount, server: StackServer) -> None:
    keys = account.credentials("PlanQuotasFunction")
    bucket = account.stack.physical("GovernanceBucket")
    s3 = over_http("s3", server, keys)
    s3.put_object(Bucket=bucket, Key="plans/ml-cluster/mine.json", Body=b"{}")
    with pytest.raises(ClientError, match=r"PlanQuotasRole.* is not authorized to perform: s3:PutObject"):
        s3.put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=b"{}")


def test_an_unsigned_request_is_refused(server: StackServer) -> None:
    assert urllib3.request("GET", server.url, retries=False).status == 403


def test_what_falls_due_happens_in_real_time(account: LocalAccount, server: StackServer) -> None:
    happened, began = threading.Event(), time.monotonic()
    account.clock.after(0.3, happened.set)
    assert happened.wait(10)
    assert time.monotonic() - began >= 0.3


def test_a_queued_message_is_delivered_when_its_delay_is_over(account: LocalAccount, server: StackServer) -> None:
    deliveries = account.stack.timeline.of
    before = len(deliveries("delivery"))
    queue = account.stack.physical("IntakeQueue")
    over_http("sqs", server).send_message(QueueUrl=queue, MessageBody="{}", DelaySeconds=1)
    deadline = time.monotonic() + 20
    while len(deliveries("delivery")) == before:
        assert time.monotonic() < deadline, "the message is still in the queue"
        time.sleep(0.05)
    assert deliveries("delivery")[-1].what.startswith("taskgov-IntakeQueue")


def test_the_clusters_api_answers_over_tls_with_the_certificate_that_eks_names(
    account: LocalAccount, server: StackServer
) -> None:
    keys = account.credentials("ReadSnapshotFunction")
    session = boto3.Session(aws_access_key_id=keys.access_key, aws_secret_access_key="any")
    connections = EksConnections(over_http("eks", server, keys), session, lambda: account.clock.now)
    access = ClusterAccess(eks_cluster_arn=account.stack.place.arn("eks", "cluster/ml-eks"))
    with connections.open(access) as api:
        nodes = kubernetes.CoreV1Api(api).list_node().items
    assert account.kubernetes_url.startswith("https://127.0.0.1:")
    assert len(nodes) == 4


def order(account: LocalAccount, server: StackServer, person: str = "ana", **overrides: Any) -> tuple[int, Any]:
    """Send a signed order through the socket, as a process that `AWS_ENDPOINT_URL` turns to the server does."""
    prepared = account.stack.entry.signed_order(
        {"action": "stop", "reason": "maintenance"}, person, **overrides
    ).prepare()
    host = urlsplit(prepared.url).netloc
    sent = urllib3.request(
        "POST", server.url, body=prepared.body, headers=dict(prepared.headers.items()) | {"Host": host}, retries=False
    )
    return sent.status, json.loads(sent.data)


def test_the_entry_takes_a_signed_order_of_another_process(account: LocalAccount, server: StackServer) -> None:
    assert order(account, server)[1]["by"] == "arn:aws:iam::111122223333:user/ana"
    assert switch(account)["by"]["S"] == "arn:aws:iam::111122223333:user/ana"


def switch(account: LocalAccount) -> dict[str, Any]:
    key = {"pk": {"S": "SWITCH"}, "sk": {"S": "STOP"}}
    table = account.stack.physical("GovernanceTable")
    found: dict[str, Any] = account.stack.client("dynamodb").get_item(TableName=table, Key=key)["Item"]
    return found


def test_the_entry_refuses_a_forged_signature_over_the_socket(account: LocalAccount, server: StackServer) -> None:
    key = account.person("ben")["accessKeyId"]
    status, answer = order(account, server, credentials=keys_of_botocore.Credentials(key, "guessed"))
    assert status == 403
    assert "does not match the signature you provided" in answer["Message"]


def test_a_sleep_of_whoever_opened_it_runs_nothing_beside_a_request(account: LocalAccount, server: StackServer) -> None:
    """`subprocess.run` with a time-out sleeps: schedules that it fired took modules from the function of a request."""
    arrived, may_go_on, fired = threading.Event(), threading.Event(), list[str]()

    def hold(_call: object) -> None:
        if not arrived.is_set():
            arrived.set()
            may_go_on.wait(10)

    schedule = account.clock.every(lambda moment: moment + timedelta(milliseconds=10), lambda: fired.append("here"))
    assert schedule is not None
    account.stack.requests.listeners.append(hold)
    try:
        with ThreadPoolExecutor() as beside:
            request = beside.submit(order, account, server)
            assert arrived.wait(10)
            began = time.monotonic()
            time.sleep(0.02)
            took = time.monotonic() - began
            may_go_on.set()
            assert request.result()[0] == 200
    finally:
        account.stack.requests.listeners.remove(hold)
        schedule.cancel()
    assert fired == []
    assert took >= 0.02


@pytest.mark.long
def test_a_command_in_a_process_of_its_own_orders_through_the_entry(account: LocalAccount, server: StackServer) -> None:
    keys = described(account, server)["people"]["ben"]
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    about = {
        "AWS_ENDPOINT_URL": server.url,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": keys["accessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["secretAccessKey"],
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    code = "from taskgov_cli.main import app; app()"
    command = [sys.executable, "-c", code, "stop", "on", "--reason", "another process", "--json"]
    done = subprocess.run(  # noqa: S603 - our own command
        command, capture_output=True, text=True, check=False, env=kept | about, timeout=120
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert (said["on"], said["reason"], said["by"]) == (
        True,
        "another process",
        "arn:aws:iam::111122223333:user/ben",
    )
    assert switch(account)["by"]["S"] == said["by"]


@pytest.mark.parametrize(
    ("given", "bridge", "hosts"),
    [
        (None, "172.17.0.1", ["172.17.0.1", "127.0.0.1"]),
        (None, None, ["127.0.0.1"]),
        ("192.0.2.7", "172.17.0.1", ["192.0.2.7", "127.0.0.1"]),
    ],
)
def test_it_listens_on_loopback_and_on_the_bridge_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch, given: str | None, bridge: str | None, hosts: list[str]
) -> None:
    monkeypatch.setattr(local, "bridge_address", lambda: bridge)
    assert local.hosts_of(given) == hosts


def test_it_gives_programs_what_they_need(account: LocalAccount, server: StackServer) -> None:
    about = described(account, server)
    assert about["awsEndpoint"] == server.url
    assert set(about["functions"]) == set(account.functions())
    assert about["functions"]["PlanQuotasFunction"]["environment"]["AWS_ENDPOINT_URL"] == server.url
