"""The alarms on what the clusters do: off by default, one contributor for each cluster, and each rings for its cause.

CloudWatch is not there to be asked: the query of each alarm is evaluated here, on what `publish_usage` measures.
"""

import re
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from taskgov.contracts.steps import PublishUsageRequest
from taskgov.services import metric_catalogue
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import RecordingMeter
from tests.template.conftest import load

ALARMS = {
    "PreemptionsAlarm": {"AlarmPreemptions": "2"},
    "PendingAlarm": {"AlarmPendingSeconds": "3600"},
    "StarvationAlarm": {"AlarmStarvation": "yes"},
    "OvercommitAlarm": {"AlarmOvercommit": "3"},
}
"""Alarm -> the parameter that turns it on."""
QUERY = re.compile(
    r"SELECT (?P<function>SUM|MAX|MIN)\((?P<metric>\w+)\) "
    r'FROM SCHEMA\("(?P<namespace>\w+)", (?P<dimensions>[\w, ]+)\) GROUP BY Cluster ORDER BY (?P=function)\(\) DESC'
)
FUNCTIONS: dict[str, Callable[[list[float]], float]] = {"SUM": sum, "MAX": max, "MIN": min}
alarms = pytest.mark.parametrize("alarm", sorted(ALARMS))


@dataclass(frozen=True)
class Alarm:
    """An alarm as the template has it."""

    properties: dict[str, Any]

    @property
    def query(self) -> re.Match[str]:
        [only] = self.properties["Metrics"]
        found = QUERY.fullmatch(only["Expression"])
        assert found is not None, only["Expression"]
        return found

    def rings_on(self, meter: RecordingMeter, parameters: dict[str, str]) -> set[str]:
        """Return the clusters whose values are above the threshold, over all of what was measured."""
        query = self.query
        series = defaultdict[str, list[float]](list)
        for cluster, measured in meter.recorded:
            dimensions = {"Cluster", *measured.dimensions}
            if measured.name == query["metric"] and dimensions == set(query["dimensions"].split(", ")):
                series[cluster].append(measured.value)
        threshold = self.properties["Threshold"]
        limit = float(parameters[threshold["Ref"]] if isinstance(threshold, dict) else threshold)
        return {cluster for cluster, values in series.items() if FUNCTIONS[query["function"]](values) > limit}


def alarm_of(name: str) -> Alarm:
    return Alarm(load().resources_of("AWS::CloudWatch::Alarm")[name])


@alarms
def test_it_is_off_until_its_parameter_is_given(alarm: str) -> None:
    template = load().cfn
    (parameter,) = ALARMS[alarm]
    default = template["Parameters"][parameter]["Default"]
    is_on = {
        "": {"Fn::Not": [{"Fn::Equals": [{"Ref": parameter}, ""]}]},
        "no": {"Fn::Equals": [{"Ref": parameter}, "yes"]},
    }
    assert template["Conditions"][template["Resources"][alarm]["Condition"]] == is_on[default]


@alarms
def test_its_query_reads_a_metric_as_it_is_published_and_gives_one_series_for_each_cluster(alarm: str) -> None:
    query = alarm_of(alarm).query
    catalogue = {each.name: each for each in metric_catalogue.METRICS}
    assert query["namespace"] == metric_catalogue.NAMESPACE
    assert set(query["dimensions"].split(", ")) == {"Cluster", *catalogue[query["metric"]].dimensions}


def calm() -> GovernedCluster:
    return GovernedCluster().with_fair_share().with_nodes(2).with_team("team-a").with_team("team-b")


def preempting() -> GovernedCluster:
    cluster = calm()
    for number in range(3):
        cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=1)
    return cluster


def waiting() -> GovernedCluster:
    return calm().with_waiting("job", "team-a", gpus=8, minutes=61)


def starving() -> GovernedCluster:
    cluster = calm().with_waiting("job", "team-a", gpus=4, minutes=1)
    cluster.used["team-b"] = {G5: {GPU: "6"}}
    return cluster


def overcommitted() -> GovernedCluster:
    return GovernedCluster().with_fair_share().with_nodes(1).with_team("team-a").with_team("team-b")


CAUSES = {
    "PreemptionsAlarm": preempting,
    "PendingAlarm": waiting,
    "StarvationAlarm": starving,
    "OvercommitAlarm": overcommitted,
}


def looked_at(cluster: GovernedCluster, looks: int = 3) -> RecordingMeter:
    meter = RecordingMeter()
    for _ in range(looks):
        cluster.publish_usage(meter=meter)(PublishUsageRequest())
        cluster.clock.advance(minutes=1)
    return meter


@pytest.mark.parametrize("cause", sorted(CAUSES))
@alarms
def test_it_rings_for_its_cause_and_for_no_other(alarm: str, cause: str) -> None:
    meter = looked_at(CAUSES[cause]())
    assert alarm_of(alarm).rings_on(meter, ALARMS[alarm]) == ({"ml-cluster"} if alarm == cause else set())


@alarms
def test_it_is_silent_on_a_calm_cluster(alarm: str) -> None:
    assert alarm_of(alarm).rings_on(looked_at(calm()), ALARMS[alarm]) == set()


def test_starvation_that_ends_within_the_quarter_of_an_hour_rings_nothing() -> None:
    cluster = starving()
    meter = looked_at(cluster)
    cluster.used["team-b"] = {G5: {GPU: "4"}}
    meter.recorded += looked_at(cluster, 1).recorded
    assert alarm_of("StarvationAlarm").rings_on(meter, ALARMS["StarvationAlarm"]) == set()
