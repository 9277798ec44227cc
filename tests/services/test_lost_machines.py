"""EC2 is asked about lost nodes of plain EKS clusters only, and what it does not confirm stays a mass loss."""

from dataclasses import replace
from datetime import timedelta

import pytest

from taskgov.allocation.mass_loss import loss_findings, mass_losses
from taskgov.errors import UpstreamError
from taskgov.services.lost_machines import ASKED_AT_MOST, with_lost_machines
from taskgov.snapshot.model import Node, Snapshot
from taskgov.snapshot.nodes import nodes_from_kubernetes
from tests.allocation.world import G5, NOW, document, share, snapshot
from tests.support.memory import CLUSTER_ARN, EKS_ARN, InMemoryMachines


def world(count: int = 4, lost: int = 2, *, arn: str = EKS_ARN, ids: bool = True) -> Snapshot:
    """Return nodes of which the first were lost five minutes ago."""
    since = NOW - timedelta(minutes=5)
    nodes = [
        Node(
            f"n-{number:04}", G5, instance_id=f"i-{number:017x}" if ids else None, healthy_since=NOW - timedelta(days=1)
        )
        for number in range(count)
    ]
    gone = [
        replace(each, in_kubernetes=False, ready=False, healthy_since=None, unhealthy_since=since) for each in nodes
    ]
    found = snapshot(document(share("team-a", 100)), nodes[lost:], gone=tuple(gone[:lost]))
    return replace(found, cluster=replace(found.cluster, arn=arn))


def said(found: Snapshot) -> str:
    (finding,) = loss_findings(found, mass_losses(found))
    return f"{finding.because} {finding.evidence['ec2Says']}"


@pytest.mark.parametrize("state", ["terminated", "shutting-down", "stopping", "stopped", None])
def test_what_ec2_confirms_is_no_mass_loss(state: str | None) -> None:
    found = world()
    assert mass_losses(found)
    ec2 = InMemoryMachines({node.instance_id or "": state for node in found.gone} if state else {})
    assert mass_losses(with_lost_machines(found, ec2)) == ()
    assert ec2.asked == [tuple(node.instance_id for node in found.gone)]


@pytest.mark.parametrize("state", ["running", "pending"])
def test_machines_that_run_are_a_mass_loss(state: str) -> None:
    found = world()
    told = with_lost_machines(found, InMemoryMachines({node.instance_id or "": state for node in found.gone}))
    assert [loss.nodes for loss in mass_losses(told)] == [("n-0000", "n-0001")]
    assert said(told).endswith(
        f"Kubernetes lists 2. EC2 reports on the lost nodes: 2 {state}. n-0000 {state}, n-0001 {state}"
    )


def test_an_ec2_that_refuses_confirms_nothing_and_the_finding_says_so() -> None:
    told = with_lost_machines(world(), InMemoryMachines(error=UpstreamError("describe instances: denied" + "x" * 9999)))
    assert "EC2 does not report their state: describe instances: denied" in said(told)
    assert len(said(told)) < 1000


def test_a_machine_that_auto_scaling_terminates_is_no_mass_loss_though_ec2_has_it_running() -> None:
    found = world()
    ids = [node.instance_id or "" for node in found.gone]
    provider = InMemoryMachines(dict.fromkeys(ids, "running"), removed=frozenset(ids))
    assert mass_losses(with_lost_machines(found, provider)) == ()
    assert provider.asked_auto_scaling == [tuple(ids)]


def test_auto_scaling_is_queried_only_about_machines_that_ec2_has_running() -> None:
    found = world(lost=3)
    ids = [node.instance_id or "" for node in found.gone]
    provider = InMemoryMachines(dict(zip(ids, ["running", "terminated", "stopping"], strict=True)))
    with_lost_machines(found, provider)
    assert provider.asked_auto_scaling == [tuple(ids[:1])]
    provider = InMemoryMachines(dict.fromkeys(ids, "terminated"))
    with_lost_machines(found, provider)
    assert provider.asked_auto_scaling == []


def test_an_auto_scaling_that_refuses_hides_nothing_that_ec2_confirms_and_the_finding_says_so() -> None:
    found = world(lost=4, count=6)
    states = zip([node.instance_id or "" for node in found.gone], ["terminated", *["running"] * 3], strict=True)
    refused = UpstreamError("describe Auto Scaling instances: denied" + "x" * 9999)
    told = with_lost_machines(found, InMemoryMachines(dict(states), auto_scaling_error=refused))
    assert [loss.nodes for loss in mass_losses(told)] == [("n-0001", "n-0002", "n-0003")]
    assert "3 running. Auto Scaling does not report on them: describe Auto Scaling instances: denied" in said(told)
    assert len(said(told)) < 1000


def test_machines_that_are_not_of_ec2_are_confirmed_by_nobody() -> None:
    ec2 = InMemoryMachines()
    told = with_lost_machines(world(ids=False), ec2)
    assert "no lost node has the providerID of an EC2 instance" in said(told)
    assert ec2.asked == []


def test_nobody_is_asked_without_a_mass_loss_or_on_hyperpod() -> None:
    ec2 = InMemoryMachines()
    assert with_lost_machines(world(lost=1), ec2) == world(lost=1)
    assert with_lost_machines(world(arn=CLUSTER_ARN), ec2) == world(arn=CLUSTER_ARN)
    assert ec2.asked == []


def test_one_look_asks_about_so_many_machines_and_no_more() -> None:
    ec2, lost = InMemoryMachines(), ASKED_AT_MOST + 2
    told = with_lost_machines(world(lost, lost), ec2)
    assert len(ec2.asked[0]) == ASKED_AT_MOST
    assert [len(loss.nodes) for loss in mass_losses(told)] == [2]


@pytest.mark.parametrize(
    ("provider", "want"),
    [
        ("aws:///us-east-1a/i-0123456789abcdef0", "i-0123456789abcdef0"),
        ("aws:///usw2-az1/sagemaker/cluster/hyperpod-abc-i-0123456789abcdef0", None),
        ("eks-hybrid:///us-west-2/ml/mi-0123456789abcdef0", None),
        (None, None),
    ],
)
def test_the_machine_of_a_node_is_in_its_provider_id(provider: str | None, want: str | None) -> None:
    node = {"metadata": {"name": "n"}, "spec": {"providerID": provider} if provider else {}, "status": {}}
    assert nodes_from_kubernetes([node])[0].instance_id == want
