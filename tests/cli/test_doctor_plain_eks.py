"""`taskgov doctor` and `taskgov init` on an EKS cluster without HyperPod, whose quotas are kept on Kueue's objects."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
import yaml

from taskgov.policy.backends import Backend
from taskgov.policy.parse import parse_policy
from taskgov_cli.doctor.checks_access import READERS, WRITERS
from taskgov_cli.doctor.checks_kueue import kueue_version
from taskgov_cli.doctor.checks_plain_eks import (
    ASKS_EC2,
    INSTALL,
    QUERIES,
    eks_cluster,
    kueue,
    node_events,
    permissions,
)
from taskgov_cli.doctor.diagnosis import Status
from taskgov_cli.doctor.examination import CHECKS as OF_BACKENDS
from taskgov_cli.doctor.facts import (
    AddOn,
    DeployedStack,
    EksCluster,
    KueueDefinition,
    KueueDeployment,
    Kueues,
    Names,
    Unknown,
)
from taskgov_embedded.iam.evaluation import grants_of
from taskgov_embedded.walkthrough.world import World, entries_of
from tests.support.examined import OF_EVERY_BACKEND_LAST, OF_ITS_RIGHTS, OF_THE_STACK, examined, tell_somebody
from tests.support.operating import DOCUMENT, G5, data, opened, played, taskgov
from tests.support.typed import typed

pytestmark = pytest.mark.long

RBAC = Path(__file__).parents[2] / "docs" / "rbac.yaml"
PLAIN = {"name": "plain-eks", "backend": "kueue"}
CHECKS = [
    "eks-cluster",
    "kueue",
    "kueue-version",
    *OF_THE_STACK,
    *OF_ITS_RIGHTS,
    "node-events",
    *OF_EVERY_BACKEND_LAST,
]


@pytest.fixture(scope="module")
def one_world() -> Iterator[World]:
    document = DOCUMENT | {"cluster": PLAIN | {"arn": "${clusterArn}"}}
    cluster = PLAIN | {"groups": [{"instanceType": G5, "count": 4}]}
    with opened({"policy": document}, cluster=cluster) as opened_world:
        played(opened_world)
        tell_somebody(opened_world)
        yield opened_world


@pytest.fixture
def world(one_world: World) -> World:
    one_world.apply_rbac()
    one_world.stack.eks.cluster("plain-eks").entries.update(entries_of(one_world.stack, is_plain_eks=True))
    return one_world


def checks(cluster: str = "plain-eks") -> dict[str, dict[str, Any]]:
    return examined(cluster, "--no-event")


@pytest.mark.parametrize("is_named", [True, False])
def test_with_everything_in_place_all_is_well_by_name_and_by_arn(is_named: bool, world: World) -> None:
    found = checks("plain-eks" if is_named else world.cluster_arn)
    assert list(found) == CHECKS
    assert {name: check["because"] for name, check in found.items() if check["status"] != "ok"} == {}
    assert found["access-entries"]["because"] == f"5 roles are in group {READERS}, 1 role is in group {WRITERS}"


def test_a_test_event_arrives_and_nothing_is_changed(world: World) -> None:
    held = world.quotas()
    assert taskgov("doctor", "plain-eks").exit_code == 0
    assert world.quotas() == held


def test_a_missing_entry_of_the_role_that_writes_is_named_with_the_command_that_makes_it(
    world: World, tmp_path: Path
) -> None:
    role = f"arn:aws:iam::{world.stack.place.account}:role/{world.stack.physical('ApplyChangeRole')}"
    boto3.client("eks").delete_access_entry(clusterName="plain-eks", principalArn=role)
    found = checks()["access-entries"]
    assert (found["status"], WRITERS in found["fix"][0]) == ("failed", True)
    typed(found["fix"][0], world, tmp_path)
    assert checks()["access-entries"]["status"] == "ok"


def test_rbac_that_is_not_applied_is_named_by_group(world: World) -> None:
    world.rights = {READERS: world.rights[READERS]}
    found = checks()["kubernetes-rights"]
    assert found["status"] == "failed"
    assert f"group {WRITERS} may not" in found["because"]
    assert f"group {READERS} may not" not in found["because"]
    assert found["fix"] == ["kubectl apply -f docs/rbac.yaml"]


def test_a_cluster_that_nobody_has_is_unknown_and_said_to_be_so(world: World) -> None:
    arn = world.cluster_arn.replace("plain-eks", "none")
    found = checks(arn)
    assert found["eks-cluster"]["status"] == "unknown"
    assert "aws eks list-clusters" in found["eks-cluster"]["fix"][0]


def test_what_is_asked_of_kubernetes_is_what_the_rbac_file_gives() -> None:
    documents = list(yaml.safe_load_all(RBAC.read_text()))
    rules: dict[str, list[Any]] = {}
    for each in documents:
        if each["kind"] in {"ClusterRole", "Role"}:
            rules.setdefault(each["metadata"]["name"], []).extend(each["rules"])
    for group, roles in ((READERS, ("taskgov-reader", "taskgov-follower")), (WRITERS, ("taskgov-writer",))):
        given = {
            (group, verb, of, resource)
            for role in roles
            for rule in rules[role]
            for of in rule["apiGroups"]
            for resource in rule["resources"]
            for verb in rule["verbs"]
        }
        asked = {right for right in OF_BACKENDS[Backend.KUEUE].rights if right[0] == group}
        # Members of the readers' group that are people may look a cohort up by name.
        assert asked == given - {(READERS, "get", "kueue.x-k8s.io", "cohorts")}


def test_permissions_of_sagemaker_are_not_asked_and_those_of_ec2_are(world: World) -> None:
    watching = DeployedStack("gov", "CREATE_COMPLETE", {}, {"InstanceStateRule": "r"})
    for role, resources in permissions(watching).items():
        arn = f"arn:aws:iam::{world.stack.place.account}:role/{world.stack.physical(role)}"
        granted = {grant.action for grant in grants_of(world.stack.account.policies.of_role(arn))}
        asked = {action for actions in resources.values() for action in actions}
        assert asked <= granted
        assert {action for action in asked if action.startswith("sagemaker:")} <= {"sagemaker:ListClusters"}
        for action in QUERIES:
            assert (action in asked) == (role in ASKS_EC2)


def test_the_doctor_has_checks_of_each_backend() -> None:
    assert list(OF_BACKENDS) == list(Backend)


# The decisions alone.

NAMES = Names("plain-eks", "gov", "plain-eks", "us-east-1", "111122223333")
CRDS = (KueueDefinition("clusterqueues.kueue.x-k8s.io", ("kubectl",)),)


def controller(tag: str, namespace: str = "kueue-system") -> KueueDeployment:
    return KueueDeployment(namespace, "kueue-controller-manager", f"registry.k8s.io/kueue/kueue{tag}")


@pytest.mark.parametrize(
    ("deployments", "status", "said"),
    [
        pytest.param([":v0.19.2"], Status.OK, "at least 0.15", id="as tested"),
        pytest.param([":v0.15.0"], Status.OK, "at least 0.15", id="the oldest"),
        pytest.param([":v0.14.3"], Status.FAILED, "must be 0.15 or later", id="too old"),
        pytest.param(["@sha256:abc"], Status.WARNING, "does not state", id="by digest"),
        pytest.param([], Status.FAILED, "not installed", id="none"),
        pytest.param([":v0.19.2", ":v0.19.1"], Status.FAILED, "several", id="two"),
    ],
)
def test_one_kueue_is_there_and_new_enough(deployments: list[str], status: Status, said: str) -> None:
    found = kueue(Kueues(tuple(map(controller, deployments)), CRDS), None)
    assert (found.status, said in found.because) == (status, True)


def test_a_kueue_without_its_crds_is_installed_again() -> None:
    found = kueue(Kueues((controller(":v0.19.2"),), ()), None)
    assert (found.status, found.fix) == (Status.FAILED, (INSTALL,))


def test_a_kueue_that_the_add_on_governs_is_examined_as_hyperpods() -> None:
    add_on = AddOn("v1.6.0-eksbuild.1", "ACTIVE", (), "v1.6.0-eksbuild.1")
    found = kueue(Kueues((controller(":v0.19.2"),), CRDS), add_on)
    assert (found.status, "SageMaker governs" in found.because) == (Status.FAILED, True)


@pytest.mark.parametrize(
    ("tag", "version", "status", "said"),
    [
        pytest.param(
            ":v0.19.7", None, Status.OK, "Kueue 0.19.7; the scheduling model follows 0.19.2", id="another patch"
        ),
        pytest.param(":v0.20.3", None, Status.WARNING, "v1beta1 is no longer served", id="newer"),
        pytest.param(":v0.18.0", None, Status.WARNING, "it does not have yet: a flavor search continues", id="older"),
        pytest.param("@sha256:abc", "v1.6.0-eksbuild.1", Status.OK, "Kueue 0.19.2; ", id="by the add-on"),
        pytest.param(":v1.3.0-eksbuild.1", None, Status.WARNING, "Kueue 0.12; ", id="tagged as the add-on"),
        pytest.param("@sha256:abc", "v1.9.0-eksbuild.1", Status.UNKNOWN, "is not known", id="an unknown add-on"),
    ],
)
def test_kueue_is_of_the_version_that_is_followed(tag: str, version: str | None, status: Status, said: str) -> None:
    add_on = None if version is None else AddOn(version, "ACTIVE", (), version)
    found = kueue_version(Kueues((controller(tag),), CRDS), add_on)
    assert (found.status, said in found.because) == (status, True), found.because


def test_a_kueue_that_nobody_may_look_at_has_an_unknown_version() -> None:
    found = kueue_version(Unknown("nobody looked"), Unknown("nobody asked"))
    assert (found.status, "nobody looked" in found.because) == (Status.UNKNOWN, True)


@pytest.mark.parametrize(("status", "want"), [("ACTIVE", Status.OK), ("UPDATING", Status.WARNING)])
def test_an_eks_cluster_is_active_or_worth_a_look(status: str, want: Status) -> None:
    assert eks_cluster(EksCluster("plain-eks", "1.33", "API", status), NAMES).status is want


@pytest.mark.parametrize(("resources", "status"), [({}, Status.WARNING), ({"InstanceStateRule": "r"}, Status.OK)])
def test_a_plain_eks_cluster_is_watched_or_the_doctor_warns(resources: dict[str, str], status: Status) -> None:
    found = node_events(DeployedStack("gov", "CREATE_COMPLETE", {}, resources), NAMES)
    assert found.status is status
    assert found.fix == (
        ("sam build", "sam deploy --stack-name gov --parameter-overrides WatchPlainEks=yes") if not resources else ()
    )


def test_what_could_not_be_read_is_unknown() -> None:
    nothing = Unknown("nobody looked")
    well = Kueues((controller(":v0.19.2"),), CRDS)
    found = (eks_cluster(nothing, NAMES), kueue(nothing, None), kueue(well, nothing), node_events(nothing, NAMES))
    assert {diagnosis.status for diagnosis in found} == {Status.UNKNOWN}


# taskgov init


def test_the_first_document_is_drafted_from_the_cluster_queues_and_changes_nothing(
    world: World, tmp_path: Path
) -> None:
    for number, cluster in enumerate(("plain-eks", world.cluster_arn)):
        file = tmp_path / f"{number}.yaml"
        found = data("init", cluster, "--output", str(file))
        parsed = parse_policy(file.read_text())
        assert parsed.document is not None, parsed.violations
        assert (parsed.document.cluster.backend, parsed.document.cluster.arn) == (Backend.KUEUE, world.cluster_arn)
        assert {team.name for team in parsed.document.teams} == {"team-a", "shared-pool"}
        assert (found["changes"], found["frozen"], found["leftOut"]) == (0, {}, [])


def test_a_queue_that_somebody_else_made_is_drafted_and_said_to_wait_for_its_adoption(
    world: World, tmp_path: Path
) -> None:
    queue = world.cluster.store.get("clusterqueues", "hyperpod-ns-team-a-clusterqueue")
    foreign = {
        **queue,
        "metadata": {
            "name": "hyperpod-ns-team-f-clusterqueue",
            "labels": {},
            "managedFields": [{"manager": "kubectl", "operation": "Apply", "fieldsV1": {"f:spec": {}}}],
        },
    }
    world.cluster.store.apply(foreign)
    try:
        found = data("init", "plain-eks", "--output", str(tmp_path / "foreign.yaml"))
    finally:
        world.cluster.store.delete("clusterqueues", foreign["metadata"]["name"])
    teams = {team["name"] for team in found["document"]["teams"]}
    assert ("team-f" in teams, found["changes"]) == (True, 0)
    assert any("team-f-quota" in sentence and "taskgov adopt" in sentence for sentence in found["decide"])


def test_the_document_s_words_for_a_cluster_that_nobody_has_name_it(world: World) -> None:
    result = taskgov("init", "nobody", "--json")
    assert result.exit_code == 3
    assert "nobody" in result.stderr
    assert json.loads(result.stdout or "null") is None
