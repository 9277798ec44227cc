"""`taskgov doctor`: each prerequisite is broken in turn; the finding names it, and its command, typed, fixes it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from taskgov.snapshot.identity import Loss, RestoredState, StateStamp
from taskgov_cli.doctor.checks_account import cloud_trail
from taskgov_cli.doctor.checks_hyperpod import add_on, kubernetes_version, one_kueue
from taskgov_cli.doctor.command import _shown, exit_code
from taskgov_cli.doctor.diagnosis import Diagnosis, Status, ok, unknown
from taskgov_cli.doctor.examination import diagnose
from taskgov_cli.doctor.facts import (
    AddOn,
    Cluster,
    EksCluster,
    Facts,
    Governor,
    KueueDefinition,
    KueueDeployment,
    Kueues,
    Names,
    Trail,
    Unknown,
)
from taskgov_cli.doctor.reading_aws import _selects_writes, _selects_writes_by_fields
from taskgov_cli.doctor.state import governor
from taskgov_embedded.eks import TASK_GOVERNANCE_ADDON, AddOnState
from taskgov_embedded.walkthrough.world import EKS_NAME, World, entries_of
from tests.support.examined import (
    OF_EVERY_BACKEND_LAST,
    OF_ITS_RIGHTS,
    OF_THE_STACK,
    checks_in,
    examined,
    tell_somebody,
)
from tests.support.memory import NOON
from tests.support.operating import DOCUMENT, be, data, opened, played, taskgov
from tests.support.typed import typed

pytestmark = pytest.mark.long

KEY = "policies/ml-cluster.yaml"
CHECKS = {
    "hyperpod-cluster",
    "kubernetes-version",
    "one-kueue",
    "add-on",
    "kueue-version",
    *OF_THE_STACK,
    *OF_ITS_RIGHTS,
    "trail",
    *OF_EVERY_BACKEND_LAST,
    "test-event",
}


@pytest.fixture(scope="module")
def one_world() -> Iterator[World]:
    with opened({"policy": DOCUMENT}) as opened_world:
        played(opened_world)
        boto3.client("s3").create_bucket(Bucket="trail")
        yield opened_world


@pytest.fixture
def world(one_world: World) -> World:
    """A cluster with everything in place: a document, a trail that logs, and somebody who is told."""
    stack = one_world.stack
    stack.faults.clear()
    stack.bus.delivery_seconds = 0
    stack.eks.register_cluster(EKS_NAME, one_world.api_server.url, "", entries=entries_of(stack))
    one_world.apply_rbac()
    stack.account.policies._inline.clear()
    stack.account.policies._by_role.clear()
    put_the_add_on_in_place(one_world)
    make_trail()
    nobody_is_told(one_world)
    tell_somebody(one_world)
    if stored(one_world) != document(one_world):
        boto3.client("s3").put_object(Bucket=bucket(one_world), Key=KEY, Body=document(one_world))
        stack.run_until_quiet()
    return one_world


def stored(world: World) -> bytes | None:
    try:
        return boto3.client("s3").get_object(Bucket=bucket(world), Key=KEY)["Body"].read()
    except ClientError:
        return None


def put_the_add_on_in_place(world: World) -> None:
    for plural in ("deployments", "customresourcedefinitions"):
        for item in world.cluster.store.list(plural):
            metadata = item["metadata"]
            world.cluster.store.delete(plural, metadata["name"], metadata.get("namespace", ""))
    world.cluster._add_on.install()


def make_trail() -> None:
    trails = boto3.client("cloudtrail")
    for each in trails.describe_trails()["trailList"]:
        trails.delete_trail(Name=each["Name"])
    trails.create_trail(Name="all", S3BucketName="trail")
    trails.start_logging(Name="all")


def bucket(world: World) -> str:
    return world.stack.outputs["BucketName"]


def document(world: World) -> bytes:
    return json.dumps(DOCUMENT).replace("${clusterArn}", world.cluster_arn).encode()


def checks(*options: str) -> dict[str, dict[str, Any]]:
    return examined("ml-cluster", *options)


def bad(found: dict[str, dict[str, Any]]) -> dict[str, str]:
    return {name: each["status"] for name, each in found.items() if each["status"] != "ok"}


def test_with_everything_in_place_all_is_well_and_a_test_event_arrives(world: World) -> None:
    before, held = len(world.stack.timeline.of("execution")), world.quotas()
    result = taskgov("doctor", "ml-cluster")
    assert (result.exit_code, "doctor: 18 ok" in result.stdout) == (0, True), result.output
    assert (len(world.stack.timeline.of("execution")), world.quotas()) == (before, held)
    assert set(checks()) == CHECKS


def test_it_writes_nothing_but_its_test_event(world: World) -> None:
    before = len(world.stack.calls)
    taskgov("doctor", "ml-cluster", "--no-event")
    mine = [call for call in world.stack.calls[before:] if call.principal.role_arn is None]
    reads = ("Describe", "List", "Get", "Simulate", "Filter", "Head")
    assert [str(call) for call in mine if not call.operation.startswith(reads)] == []
    assert len(mine) > 20


def no_add_on(world: World) -> None:
    del world.stack.eks.cluster(EKS_NAME).addons[TASK_GOVERNANCE_ADDON]
    world.cluster.store.delete("deployments", "kueue-controller-manager", "kueue-system")
    for item in world.cluster.store.list("customresourcedefinitions"):
        world.cluster.store.delete("customresourcedefinitions", item["metadata"]["name"])


def broken_add_on(world: World) -> None:
    state = AddOnState(status="CREATE_FAILED", issues=(("ConfigurationConflict", "Conflicts found"),))
    world.stack.eks.cluster(EKS_NAME).addons[TASK_GOVERNANCE_ADDON] = state


def old_kubernetes(world: World) -> None:
    world.stack.eks.cluster(EKS_NAME).version = "1.28"


def second_kueue(world: World) -> None:
    place_kueue(world, "kueue-dev")


def kueue_by_helm(world: World) -> None:
    place_kueue(world, "batch", {"meta.helm.sh/release-name": "mine", "meta.helm.sh/release-namespace": "batch"})


def place_kueue(world: World, namespace: str, annotations: dict[str, str] | None = None) -> None:
    container = {"name": "manager", "image": "registry.k8s.io/kueue/kueue:v0.14.1"}
    metadata = {"name": "kueue-controller-manager", "namespace": namespace, "annotations": annotations or {}}
    spec = {"template": {"spec": {"containers": [container]}}}
    world.cluster.store.place({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec})


def no_access_entry(world: World) -> None:
    role, *_ = world.stack.outputs["KubernetesRoleArns"].split(",")
    boto3.client("eks").delete_access_entry(clusterName=EKS_NAME, principalArn=role)


def access_entry_without_its_group(world: World) -> None:
    role, *_ = world.stack.outputs["KubernetesRoleArns"].split(",")
    boto3.client("eks").update_access_entry(clusterName=EKS_NAME, principalArn=role, kubernetesGroups=["viewers"])


def only_the_config_map(world: World) -> None:
    world.stack.eks.cluster(EKS_NAME).authentication_mode = "CONFIG_MAP"


def no_rights_in_kubernetes(world: World) -> None:
    world.rights.clear()


def a_permission_taken_away(world: World) -> None:
    role = world.stack.physical("ReadSnapshotRole")
    policy = json.dumps({"Statement": [{"Effect": "Allow", "Action": "s3:*", "Resource": "*"}]})
    boto3.client("iam").put_role_policy(RoleName=role, PolicyName="own", PolicyDocument=policy)


def no_trail(world: World) -> None:
    boto3.client("cloudtrail").delete_trail(Name="all")


def a_trail_that_rests(world: World) -> None:
    boto3.client("cloudtrail").stop_logging(Name="all")


def a_trail_of_reads_only(world: World) -> None:
    selector = {"ReadWriteType": "ReadOnly", "IncludeManagementEvents": True}
    boto3.client("cloudtrail").put_event_selectors(TrailName="all", EventSelectors=[selector])


def nobody_is_told(world: World) -> None:
    sns = boto3.client("sns")
    for each in sns.list_subscriptions_by_topic(TopicArn=world.stack.outputs["NoticeTopicArn"])["Subscriptions"]:
        sns.unsubscribe(SubscriptionArn=each["SubscriptionArn"])


def no_document(world: World) -> None:
    boto3.client("s3").delete_object(Bucket=bucket(world), Key=KEY)


def document_of_another_cluster(world: World) -> None:
    body = document(world).replace(world.cluster_arn[-12:].encode(), b"zzzzzzzzzzzz")
    boto3.client("s3").put_object(Bucket=bucket(world), Key=KEY, Body=body)


BROKEN: dict[str, tuple[Callable[[World], None], str, str]] = {
    "the add-on is not installed": (no_add_on, "add-on", "is not installed"),
    "the add-on failed": (broken_add_on, "add-on", "CREATE_FAILED: ConfigurationConflict: Conflicts found"),
    "Kubernetes is too old": (old_kubernetes, "kubernetes-version", "needs 1.30 or newer"),
    "a second Kueue runs": (second_kueue, "one-kueue", "in namespace kueue-dev (registry.k8s.io/kueue/kueue:v0.14.1)"),
    "a second Kueue runs, by Helm": (kueue_by_helm, "one-kueue", "in namespace batch"),
    "a role has no access entry": (no_access_entry, "access-entries", "ReadSnapshotRole"),
    "a role is not in the group": (access_entry_without_its_group, "access-entries", "is not in group taskgov-readers"),
    "the cluster takes no entries": (only_the_config_map, "authentication-mode", "does not accept access entries"),
    "the group may not read": (no_rights_in_kubernetes, "kubernetes-rights", "may not list nodes"),
    "a permission is missing": (
        a_permission_taken_away,
        "iam-permissions",
        "ReadSnapshotRole may not sagemaker:DescribeCluster",
    ),
    "there is no trail": (no_trail, "trail", "the Region has no trail"),
    "the trail is stopped": (a_trail_that_rests, "trail", "trail all is not logging"),
    "the trail records no writes": (a_trail_of_reads_only, "trail", "no trail logs write management events"),
    "nobody is subscribed": (nobody_is_told, "subscription", "nobody is subscribed"),
    "there is no document": (no_document, "policy-document", "there is no document"),
    "the document is another cluster's": (document_of_another_cluster, "policy-document", "belongs to another cluster"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_each_prerequisite_is_named_when_it_is_broken_and_its_command_fixes_it(
    world: World, case: str, tmp_path: Path
) -> None:
    breaking, check, said = BROKEN[case]
    breaking(world)
    result = taskgov("doctor", "ml-cluster", "--no-event", "--json")
    found = checks_in(result)
    assert (bad(found), result.exit_code) == ({check: "failed"}, 1)
    assert said in found[check]["because"]
    for command in found[check]["fix"]:
        typed(command, world, tmp_path)
    assert bad(checks("--no-event")) == {}


def test_a_document_that_breaks_rules_is_named_with_them(world: World) -> None:
    boto3.client("s3").put_object(Bucket=bucket(world), Key=KEY, Body=b"apiVersion: taskgov/v2\n")
    found = checks("--no-event")["policy-document"]
    assert (found["status"], "must be 'taskgov/v1'" in found["because"]) == ("failed", True)
    assert "taskgov validate ml-cluster.yaml" in found["fix"]


PLAIN = b"""apiVersion: taskgov/v1
cluster: {name: plain, arn: "arn:aws:eks:us-east-1:111122223333:cluster/plain", backend: kueue}
teams: []
"""


def test_the_document_of_a_cluster_that_sagemaker_does_not_know_is_read(world: World) -> None:
    boto3.client("s3").put_object(Bucket=bucket(world), Key="policies/plain.yaml", Body=PLAIN)
    result = taskgov("doctor", "plain", "--no-event", "--json")
    found = checks_in(result)["policy-document"]
    assert (found["status"], "is valid: 0 teams" in found["because"]) == ("ok", True)
    boto3.client("s3").delete_object(Bucket=bucket(world), Key="policies/plain.yaml")


def test_without_its_access_entry_a_function_cannot_read_and_with_the_command_it_can(
    world: World, tmp_path: Path
) -> None:
    """What the finding says is true: the embedded cluster lets nobody in without an entry."""
    no_access_entry(world)
    request = {"clusterArn": world.cluster_arn, "runId": "a-run", "cause": None}
    refused = json.loads(world.stack.invoke("ReadSnapshotFunction", request).payload)
    assert "401" in refused["unreadable"]
    for command in checks("--no-event")["access-entries"]["fix"]:
        typed(command, world, tmp_path)
    assert "unreadable" not in json.loads(world.stack.invoke("ReadSnapshotFunction", request).payload)


def test_an_event_that_does_not_arrive_is_a_failure_with_where_to_look(world: World) -> None:
    world.stack.bus.delivery_seconds = 900
    found = checks("--wait", "20")["test-event"]
    assert (found["status"], "was not received within 20 s" in found["because"]) == ("failed", True)
    assert [command.split()[2] for command in found["fix"]] == ["get-queue-attributes"] * 3


@pytest.mark.parametrize(
    ("service", "operation", "check"),
    [
        ("eks", "DescribeAddon", "add-on"),
        ("cloudtrail", "DescribeTrails", "trail"),
        ("cloudtrail", "GetEventSelectors", "trail"),
        ("iam", "SimulatePrincipalPolicy", "iam-permissions"),
        ("sns", "ListSubscriptionsByTopic", "subscription"),
        ("eks", "DescribeAccessEntry", "access-entries"),
        ("s3", "GetObject", "policy-document"),
    ],
)
def test_what_cannot_be_read_is_unknown_with_the_reason_and_never_well(
    world: World, service: str, operation: str, check: str
) -> None:
    world.stack.faults.fail(service, operation, code="AccessDeniedException", times=1000, message="not you")
    result = taskgov("doctor", "ml-cluster", "--no-event", "--json")
    found = checks_in(result)
    assert found[check]["status"] == "unknown"
    assert "AccessDenied" in found[check]["because"]
    assert result.exit_code == 3


def test_of_a_cluster_that_is_not_there_everything_that_hangs_on_it_is_unknown(world: World) -> None:
    result = taskgov("doctor", "no-such-cluster", "--no-event")
    assert result.exit_code == 3
    assert "aws sagemaker list-clusters" in result.stdout
    names = {
        each["check"]
        for each in data("doctor", "no-such-cluster", "--no-event")["checks"]
        if each["status"] == "unknown"
    }
    assert {"hyperpod-cluster", "kubernetes-version", "add-on", "one-kueue", "access-entries", "trail"} <= names


def test_of_a_stack_that_is_not_there_it_says_how_to_deploy_it(world: World) -> None:
    found = checks("--stack", "nowhere")
    assert found["stack"]["status"] == "unknown"
    assert found["stack"]["fix"] == ["sam build", "sam deploy"]
    assert found["test-event"]["status"] == "unknown"


def test_the_only_cluster_is_found_by_itself(world: World) -> None:
    assert data("doctor", "--no-event")["cluster"] == world.cluster_arn


def test_another_stack_that_governs_is_found_and_the_command_hands_the_cluster_over(world: World) -> None:
    world.registered.tags["taskgov:stack:elder"] = "2026-11-01T09:00:00+00:00"
    found = next(each for each in data("doctor", "ml-cluster", "--no-event")["checks"] if each["check"] == "governor")
    assert found["status"] == "failed"
    assert "stack elder (since 2026-11-01 09:00 UTC) governs ml-cluster" in found["because"]
    assert taskgov(*found["fix"][0].split()[1:]).exit_code == 0
    assert "taskgov:stack:elder" not in world.registered.tags


def test_a_state_that_was_restored_is_shown_until_it_is_settled() -> None:
    restored = RestoredState(Loss.TABLE_BEHIND, NOON, "the table is at 1, the bucket at 4")
    shown = governor(Governor(StateStamp("own", 5, NOON, restored), ()), NAMES)
    assert (shown.status, "table-behind" in shown.because) == (Status.WARNING, True)


# The decisions alone, on what an account may show and the embedded one does not.

NAMES = Names("ml-cluster", "taskgov", "ml-eks", "us-east-1", "111122223333")
CLUSTER = Cluster("ml-cluster", "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl", "InService", "x")
NOTHING = Unknown("nobody looked")
UNREAD = Facts(*([NOTHING] * 14))


def test_of_nothing_that_could_be_read_nothing_is_well() -> None:
    found = diagnose(replace(UNREAD, trace=NOTHING), cluster="ml-cluster", stack="taskgov")
    assert {each.check for each in found} == CHECKS
    assert {each.status for each in found} == {Status.UNKNOWN}
    assert exit_code(found) == 3


def test_what_several_checks_found_is_written_once() -> None:
    found = [unknown("cluster", "it is not there"), ok("stack", "it is there"), unknown("add-on", "it is not there")]
    told = StringIO()
    Console(file=told, width=80).print(*_shown("ml", found))
    assert told.getvalue().count("it is not there") == 1
    assert "see cluster" in told.getvalue()


@pytest.mark.parametrize(
    ("statuses", "code"),
    [([], 0), (["ok", "warning"], 0), (["ok", "unknown"], 3), (["unknown", "failed"], 1)],
)
def test_the_exit_code_says_broken_before_unknown(statuses: list[str], code: int) -> None:
    assert exit_code([Diagnosis("x", Status(status), "") for status in statuses]) == code


@pytest.mark.parametrize(
    ("version", "steps"), [("1.30", []), ("2.0", []), ("1.29", ["1.30"]), ("1.27", ["1.28", "1.29", "1.30"])]
)
def test_kubernetes_is_upgraded_one_minor_version_at_a_time(version: str, steps: list[str]) -> None:
    found = kubernetes_version(EksCluster("ml-eks", version, "API"), NAMES)
    assert [command.rsplit(" ", 1)[1] for command in found.fix] == steps


def test_an_old_add_on_works_and_is_offered_the_newest_with_what_is_known_of_the_way() -> None:
    found = add_on(AddOn("v1.3.0-eksbuild.1", "ACTIVE", (), "v1.6.0-eksbuild.1"), NAMES)
    assert (found.status, "storedVersions" in found.note) == (Status.WARNING, True)
    assert found.fix[0].endswith("--addon-version v1.6.0-eksbuild.1")


def test_an_add_on_under_way_is_waited_for() -> None:
    assert add_on(AddOn("v1.6.0", "UPDATING", (), NOTHING), NAMES).status is Status.WARNING


def test_a_kueue_of_ones_own_is_removed_before_the_add_on_comes() -> None:
    own = KueueDeployment("kueue-system", "kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.14.1")
    crd = KueueDefinition("workloads.kueue.x-k8s.io", ("kubectl",))
    found = one_kueue(Kueues((own,), (crd,)), None, NAMES)
    assert found.status is Status.FAILED
    assert found.fix[0] == (
        "kubectl delete -f https://github.com/kubernetes-sigs/kueue/releases/download/v0.14.1/manifests.yaml"
    )


def test_definitions_that_somebody_else_owns_are_taken_over_by_the_add_on() -> None:
    crd = KueueDefinition("workloads.kueue.x-k8s.io", ("eks", "kubectl-client-side-apply"))
    found = one_kueue(Kueues((), (crd,)), AddOn("v1.6.0", "ACTIVE", (), NOTHING), NAMES)
    assert "1 CRDs owned by kubectl-client-side-apply" in found.because
    assert found.fix[0].endswith("--resolve-conflicts OVERWRITE")


def test_definitions_of_a_helm_release_go_with_it() -> None:
    crd = KueueDefinition("workloads.kueue.x-k8s.io", ("helm",), "mine", "batch")
    found = one_kueue(Kueues((), (crd,)), AddOn("v1.6.0", "ACTIVE", (), NOTHING), NAMES)
    assert found.fix == ("helm uninstall mine --namespace batch",)


def test_one_trail_that_records_is_enough_and_one_that_cannot_be_read_is_no_proof() -> None:
    good, bad_one = Trail("a", True, True), Trail("b", True, False)
    dark = Trail("c", True, NOTHING)
    assert cloud_trail((bad_one, dark, good), CLUSTER, NAMES).status is Status.OK
    assert cloud_trail((bad_one, dark), CLUSTER, NAMES).status is Status.UNKNOWN
    assert cloud_trail((bad_one,), CLUSTER, NAMES).status is Status.FAILED


@pytest.mark.parametrize(
    ("selector", "takes"),
    [
        ({}, True),
        ({"ReadWriteType": "WriteOnly"}, True),
        ({"ReadWriteType": "ReadOnly"}, False),
        ({"IncludeManagementEvents": False}, False),
        ({"ExcludeManagementEventSources": ["sagemaker.amazonaws.com"]}, False),
    ],
)
def test_a_basic_selector_takes_calls_that_write(selector: dict[str, Any], takes: bool) -> None:
    assert _selects_writes(selector) is takes


@pytest.mark.parametrize(
    ("fields", "takes"),
    [
        ({"eventCategory": ["Management"]}, True),
        ({"eventCategory": ["Data"]}, False),
        ({"eventCategory": ["Management"], "readOnly": ["true"]}, False),
        ({"eventCategory": ["Management"], "readOnly": ["false"]}, True),
        ({"eventCategory": ["Management"], "eventSource": ["ec2.amazonaws.com"]}, False),
        ({"eventCategory": ["Management"], "eventSource": ["sagemaker.amazonaws.com"]}, True),
    ],
)
def test_an_advanced_selector_takes_calls_that_write(fields: dict[str, list[str]], takes: bool) -> None:
    selector = {"FieldSelectors": [{"Field": name, "Equals": values} for name, values in fields.items()]}
    assert _selects_writes_by_fields(selector) is takes


def test_a_person_who_may_not_ask_gets_unknown_for_the_cluster(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.stack.eks.cluster(EKS_NAME)
    monkeypatch.setattr(type(world.stack.eks), "groups_of", lambda *_: frozenset())
    be("ana", world, monkeypatch)
    found = checks("--no-event")
    assert {name: found[name]["status"] for name in ("one-kueue", "kubernetes-rights")} == {
        "one-kueue": "unknown",
        "kubernetes-rights": "unknown",
    }
    assert "403" in found["one-kueue"]["because"]
