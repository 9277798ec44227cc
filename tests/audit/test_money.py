"""What idle quota, waiting and preempted work come to: exact sums, and what is in none of them."""

from dataclasses import replace

import pytest

from taskgov.audit.money import Money, money_of
from taskgov.audit.report import report_json
from taskgov.audit.report_build import audit_report
from taskgov.audit.report_html import report_html
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.policy.document import PolicyDocument
from taskgov.policy.parse import parse_policy
from taskgov.snapshot.model import Snapshot
from taskgov.usage.cluster_usage import cluster_usage
from taskgov.usage.tasks import tasks_of
from tests.allocation.world import document
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.reports import report_from_json

TWO_G5 = {"cpu": "88", "memory": "328Gi", GPU: "8"}


def money(snapshot: Snapshot, **prices: float) -> Money:
    named = {f"ml.{name.replace('_', '.')}": price for name, price in prices.items()}
    found = money_of(cluster_usage(snapshot), tasks_of(snapshot), named, InstanceTypeTable(), snapshot.taken_at)
    assert found is not None
    return found


def lines(found: Money) -> list[tuple[str, str, float, float, float]]:
    return [(one.team, one.instance_type, one.idle_per_hour, one.waiting, one.preempted) for one in found.lines]


def cluster() -> GovernedCluster:
    return GovernedCluster().with_fair_share().with_nodes(3)


def test_without_prices_there_is_no_money() -> None:
    snapshot = cluster().with_team("a").snapshot()
    assert money_of(cluster_usage(snapshot), (), {}, InstanceTypeTable(), snapshot.taken_at) is None
    assert audit_report(snapshot).money is None
    assert 'id="money"' not in report_html(audit_report(snapshot)).decode()


def test_idle_waiting_and_preempted_are_reported_by_team() -> None:
    """An ml.g5.12xlarge has 4 GPUs: at 8 an hour, a GPU costs 2."""
    world = cluster().with_team("a", 2, used={GPU: "4"}).with_team("b").with_team("c", strategy="DontLend")
    world.with_waiting("w", "b", gpus=3, minutes=30).with_preempted("p", "b", by="a", gpus=2, minutes=6, ran_minutes=60)
    found = money(world.snapshot(), g5_12xlarge=8.0)
    waited = 2 * 3 * 0.5 + 2 * 2 * 0.1
    assert lines(found) == [
        ("a", G5, 8.0, 0.0, 0.0),
        ("b", G5, 8.0, pytest.approx(waited), 4.0),
        ("c", G5, 8.0, 0.0, 0.0),
    ]
    assert (found.idle_per_hour, found.preempted, found.left_out_gpu_hours) == (24.0, 4.0, 0.0)


def test_what_others_borrow_is_not_idle() -> None:
    found = money(cluster().with_team("a", used=TWO_G5).with_team("b").snapshot(), g5_12xlarge=8.0)
    assert found.idle_per_hour == 0.0


def test_sums_are_exact_and_rounded_once() -> None:
    """Three lines of half a cent each: rows show none of them, the sum does."""
    world = cluster().with_team("a").with_team("b").with_team("c")
    found = money(world.snapshot(), g5_12xlarge=0.005)
    assert ([one.idle_per_hour for one in found.lines], found.idle_per_hour) == ([0.0] * 3, 0.02)


def test_a_type_without_a_price_is_left_out_and_reported_in_gpu_hours() -> None:
    world = cluster().with_team("a").with_waiting("w", "a", gpus=4, minutes=30)
    world.with_preempted("p", "a", by="b", gpus=1, minutes=60, ran_minutes=60)
    found = money(world.snapshot(), p5_48xlarge=98.32)
    assert (found.lines, found.idle_per_hour, found.waiting, found.preempted) == ((), 0.0, 0.0, 0.0)
    assert found.left_out_gpu_hours == 4 * 0.5 + 1 * 1 + 1


def test_on_a_type_without_accelerators_cores_are_paid_for() -> None:
    world = GovernedCluster().with_nodes(2, instance_type="ml.c5.2xlarge")
    world.with_team("a", 2, instance_type="ml.c5.2xlarge", used={"cpu": "4"})
    assert money(world.snapshot(), c5_2xlarge=0.8).idle_per_hour == pytest.approx(1.2)


def priced(prices: dict[str, float]) -> PolicyDocument:
    return document(
        {"name": "a", "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 1}]}},
        pool=False,
        audit={"prices": prices},
    )


def test_the_report_has_it_as_data_and_on_the_page() -> None:
    snapshot = cluster().with_team("a").snapshot()
    report = audit_report(replace(snapshot, policy=priced({G5: 8.0})))
    assert report.money is not None
    assert report_from_json(report_json(report)).money == report.money
    page = report_html(report).decode()
    assert 'id="money"' in page
    assert "Idle: 8 per hour." in page


@pytest.mark.parametrize(
    ("prices", "rule"),
    [
        ("{ml.g5.8xlarge: -1}", "greater than or equal to 0"),
        ("{ml.g5.8xlarge: much}", "must be"),
        ("{g5: 1}", "ml."),
        ("{ml.g5.8xlarge: .inf}", "must be"),
    ],
)
def test_a_price_that_is_none_is_named(prices: str, rule: str) -> None:
    cluster_ref = '{name: ml-cluster, arn: "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}'
    text = f"apiVersion: taskgov/v1\ncluster: {cluster_ref}\naudit: {{prices: {prices}}}\n"
    [found] = parse_policy(text).violations
    assert found.path.startswith("audit.prices")
    assert rule in found.rule
