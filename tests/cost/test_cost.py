"""`docs/cost.md` is counted requests times prices: fresh, and right in its arithmetic."""

from dataclasses import replace

import pytest

from benchmarks.cost import (
    COUNTS,
    GROUPS,
    PAGE,
    amounts,
    bill,
    full_size_section,
    inputs,
    sections,
    series_of,
    times_a_month,
)
from benchmarks.cost_counts import TEAMS, Counts, Measured, from_json, measure, to_json
from benchmarks.cost_full_size import PARTS, full_size_amounts
from benchmarks.scale.functions import FUNCTION_OF
from benchmarks.scale.results import functions, stored
from tests.support.golden import assert_section

KEPT = from_json(COUNTS.read_text())
GIVEN = inputs()
SMALL = Measured(
    nodes=100,
    teams=2,
    activities={
        "minute": Counts({"F": 1}, {"F": 10}, {"lambda_requests": 1, "express_requests": 1, "s3_puts": 1}, 1000),
        "starts": Counts({}, {}, {"s3_puts": 1}),
        "look": Counts({"F": 2}, {}, {"lambda_requests": 2, "state_transitions": 13}),
        "fault": Counts({}, {}, {"dynamodb_writes": 14}),
        "audit": Counts({}, {}, {"notices": 1}),
    },
    fixed={"custom_metrics": 65, "alarm_metrics": 16, "dashboards": 1, "kms_keys": 1},
    series={"QuotaUsed": 2, "Borrowed": 2, "PendingGpus": 2, "CapacityHealthy": 1, "PlansComputed": 1},
    stored_bytes={"snapshots": 1_000_000},
    memory_mb={"F": 512},
)
ASSUMED = {
    "hours_per_month": 720,
    "days_per_fault_and_node": 100,
    "milliseconds_per_invocation": 100,
    "milliseconds_per_request": 40,
    "milliseconds_per_fan_out": 500,
    "milliseconds_of_futures": 1000,
    "platform_log_bytes": 500,
    "idle_polls_per_minute": 15,
}


def test_the_page_shows_what_the_counts_and_prices_come_to() -> None:
    for name, table in sections(KEPT, GIVEN).items():
        assert_section(PAGE, name, table)
    assert_section(PAGE, "full-size", full_size_section(KEPT, GIVEN))


@pytest.mark.long
def test_what_was_counted_for_the_smallest_cluster_is_what_the_stack_asks_for_today() -> None:
    """To a twentieth of the bill, so that the page stays true; beyond it: `make cost ARGS=--measure`."""
    nodes = min(TEAMS)
    (today,) = from_json(to_json([measure(nodes, TEAMS[nodes])]))
    (kept,) = (each for each in KEPT if each.nodes == nodes)
    now, then = bill(today, GIVEN), bill(kept, GIVEN)
    assert now == pytest.approx(then, rel=0.2, abs=0.5)
    assert sum(now.values()) == pytest.approx(sum(then.values()), rel=0.05)
    assert {name for name, counts in today.activities.items() if counts.totals} == set(kept.activities)


def test_the_sizes_of_the_page_are_those_that_are_promised() -> None:
    assert [(each.nodes, each.teams) for each in KEPT] == [(10, 4), (100, 10), (1000, 25)]


def test_a_month_has_its_minutes_hours_nights_and_faults() -> None:
    assert times_a_month(SMALL, ASSUMED) == {"minute": 43_200, "starts": 8_640, "look": 720, "audit": 30, "fault": 30}


def test_amounts_are_counts_times_how_often_each_thing_happens() -> None:
    found = amounts(SMALL, ASSUMED)
    assert found["lambda_requests"] == 43_200 + 2 * 720
    assert found["state_transitions"] == 13 * 720
    assert found["dynamodb_writes"] == 14 * 30
    assert found["notices"] == 30
    # (100 ms + 10 requests x 40 ms) a minute and 2 x 100 ms an hour, of half a GB
    assert found["lambda_gb_seconds"] == pytest.approx((43_200 * 0.5 + 720 * 0.2) / 2)
    assert found["log_gb"] == pytest.approx((43_200 * 1500 + 720 * 2 * 500) / 1e9)
    assert found["s3_gb_months"] == pytest.approx((720 + 2 * 30) * 1e6 / 1e9)


def test_at_full_size_what_grows_is_larger_and_what_does_not_is_as_counted() -> None:
    counted, full = amounts(KEPT[-1], GIVEN.assumed), full_size_amounts(KEPT[-1], GIVEN, stored(), functions())
    grown = {name for name, amount in full.items() if amount > counted[name]}
    assert grown >= {"custom_metrics", "log_gb", "lambda_gb_seconds", "dynamodb_reads", "s3_gb_months", "s3_puts"}
    assert not grown & {"kms_keys", "dashboards", "alarm_metrics", "scheduled_invocations"}
    assert {name for name, amount in full.items() if amount < counted[name]} == set()
    assert full["custom_metrics"] == 5000
    assert full["log_gb"] == pytest.approx(730 * 60 * 800_000 / 1e9, rel=0.2)
    assert {name for names in PARTS.values() for name in names} <= FUNCTION_OF.keys()


def test_clusters_share_the_fan_out_its_list_and_the_alarms() -> None:
    one, ten, many = (amounts(SMALL, ASSUMED, clusters) for clusters in (1, 10, 200))
    assert ten["lambda_requests"] == 10 * one["lambda_requests"]
    assert ten["custom_metrics"] == 10 * one["custom_metrics"]
    assert {each["express_requests"] for each in (one, ten, many)} == {43_200}
    assert ten["alarm_metrics"] == one["alarm_metrics"]
    assert (one["s3_puts"], ten["s3_puts"]) == (51_840, 51_840 - 9 * (720 + 30))
    # Half a second, the look's 100 ms + 10 requests x 40 ms, and the turns: none, 9 s, 199 x 0.2 s; of 64 MB.
    # A look at starts has futures of a second, and no requests here.
    for found, seconds in ((one, 1.0), (ten, 10.0), (many, 40.8)):
        assert found["express_gb_seconds"] == pytest.approx((43_200 * seconds + 8_640 * (seconds + 0.5)) / 16)


def test_everything_that_is_counted_has_a_price_and_a_place_in_the_bill() -> None:
    placed = {name for names in GROUPS.values() for name in names}
    assert placed == set(GIVEN.prices)
    counted = {name for each in KEPT for counts in each.activities.values() for name in counts.totals}
    assert counted | set(KEPT[0].fixed) <= placed


def test_the_bill_is_the_sum_of_amounts_times_prices() -> None:
    given = replace(GIVEN, assumed=ASSUMED)
    found = bill(SMALL, given)
    assert found["CloudWatch metrics"] == pytest.approx(65 * 0.30)
    express = 43_200 / 1e6 + (43_200 + 8_640 * 1.5) / 16 * 0.06 / 3600
    assert found["Step Functions"] == pytest.approx(13 * 720 * 0.025 / 1000 + express)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_series_grow_with_teams_and_instance_types_and_not_with_nodes() -> None:
    assert series_of(SMALL, teams=2, types=1) == sum(SMALL.series.values())
    assert series_of(SMALL, teams=10, types=4) == 2 * 40 + 10 + 4 + 1
    assert [series_of(each, 10, 2) for each in KEPT[:1]] == [series_of(each, 10, 2) for each in KEPT[-1:]]
