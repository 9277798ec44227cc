"""Schedules, alarms with their runbooks, the dashboard, and what a deployment starts with."""

import json
import re
import tomllib
from typing import Any

import pytest

from taskgov.services import metric_catalogue
from taskgov.services.metric_form import Metric
from taskgov_embedded.cloudformation.template import Translated
from tests.support.tools import run_with_sam
from tests.template.conftest import ROOT, Properties, load, references

ALARMS = load().resources_of("AWS::CloudWatch::Alarm")
SCHEDULES = load().resources_of("AWS::Scheduler::Schedule")
PARAMETERS = load().cfn["Parameters"]
RUNBOOKS = ROOT / "docs" / "runbooks"
alarms = pytest.mark.parametrize("name", sorted(ALARMS))
schedules = pytest.mark.parametrize("name", sorted(SCHEDULES))


def runbook(alarm: Properties) -> str:
    return re.search(r"docs/runbooks/([a-z-]+\.md)$", alarm["AlarmDescription"])[1]  # type: ignore[index]


@alarms
def test_an_alarm_notifies_people_and_names_a_runbook_that_exists(name: str) -> None:
    assert ALARMS[name]["AlarmActions"] == ALARMS[name]["OKActions"] == [{"Ref": "NoticeTopic"}]
    assert (RUNBOOKS / runbook(ALARMS[name])).is_file()


OF_FINDINGS = {"restored-state.md": "findings/of_state.py"}
"""Runbooks that no alarm leads to, and the file whose findings do."""


def test_every_runbook_belongs_to_one_alarm_or_to_findings() -> None:
    assert sorted((*map(runbook, ALARMS.values()), *OF_FINDINGS)) == sorted(path.name for path in RUNBOOKS.glob("*.md"))
    for name, file in OF_FINDINGS.items():
        assert f"docs/runbooks/{name}" in (ROOT / "layers/taskgov/python/taskgov" / file).read_text()


@alarms
def test_a_runbook_says_what_it_means_and_what_to_do(name: str) -> None:
    text = (RUNBOOKS / runbook(ALARMS[name])).read_text()
    for heading in ("## What it means", "## What to look at", "## What to do"):
        assert heading in text


def test_there_is_an_alarm_for_every_dead_letter_queue_machine_and_function(stack: Translated) -> None:
    watched = set().union(*(references([one.get("Dimensions"), one.get("Metrics")]) for one in ALARMS.values()))
    queues = {name for name in stack.resources_of("AWS::SQS::Queue") if "DeadLetter" in name}
    machines = set(stack.resources_of("AWS::StepFunctions::StateMachine"))
    functions = set(stack.resources_of("AWS::Lambda::Function"))
    assert queues | machines | functions <= watched


def metrics_of(alarm: str) -> list[Properties]:
    """Return the metrics of an alarm; one on condition counts as there."""
    return [one["Fn::If"][1] if "Fn::If" in one else one for one in ALARMS[alarm].get("Metrics", ())]


@alarms
def test_every_metric_of_a_sum_is_part_of_it(name: str) -> None:
    metrics = metrics_of(name)
    parts = {one["Id"] for one in metrics if "MetricStat" in one}
    for one in metrics:
        if one.get("Expression", "").startswith("SELECT "):
            assert len(metrics) == 1  # a query reads its metrics itself (`test_task_alarms`)
        elif "Expression" in one and "METRICS()" not in one["Expression"]:
            assert set(re.findall(r"[a-z]+", one["Expression"])) == parts
        elif "Expression" in one:
            assert one["Expression"] == "SUM(FILL(METRICS(), 0))"  # only what happened has a value
            assert len(parts) <= 10  # of one alarm (PutMetricAlarm, MetricDataQuery)
        else:
            assert one["ReturnData"] is False


def test_the_events_of_every_rule_are_watched_but_those_that_another_rule_reports_too(stack: Translated) -> None:
    rules = set(stack.resources_of("AWS::Events::Rule"))
    watched = {name for one in metrics_of("EventsLostAlarm") for name in references(one) & rules}
    assert rules - watched == {"AutoScalingRule"}  # each of its events is one of InstanceStateRule too


def test_silence_is_an_alarm_only_where_something_must_report() -> None:
    treated = {
        name: one["TreatMissingData"] for name, one in ALARMS.items() if one["TreatMissingData"] != "notBreaching"
    }
    # An age that is not measured may be as great as before; that nothing is measured is the other one's alarm.
    assert treated == {"ClusterStaleAlarm": "ignore", "PublishingStaleAlarm": "breaching"}


@alarms
def test_an_alarm_over_all_clusters_watches_a_metric_that_is_published_for_all(name: str) -> None:
    if ALARMS[name].get("Namespace") != "TaskGovernance":
        return
    catalogue = {each.name: each for each in metric_catalogue.METRICS}
    assert ALARMS[name]["Dimensions"] == [{"Name": "Cluster", "Value": metric_catalogue.ALL_CLUSTERS}]
    assert f"`{metric_catalogue.ALL_CLUSTERS}`" in catalogue[ALARMS[name]["MetricName"]].meaning


def test_a_look_that_fails_once_rings_nothing_and_a_missed_audit_rings_at_once() -> None:
    periods = {name: (each["Period"], each["EvaluationPeriods"]) for name, each in ALARMS.items() if "Period" in each}
    assert periods["ClusterUnreadableAlarm"] == (900, 2)
    assert periods["ClusterStaleAlarm"] == (900, 1)
    assert periods["AuditMissedAlarm"] == (300, 1)


WAITS: dict[str, tuple[Any, int, int]] = {
    "AuditFailedAlarm": (0, 300, 1),
    "AuditMissedAlarm": (0, 300, 1),
    "ClusterStaleAlarm": (2 * 3600, 900, 1),
    "ClusterUnreadableAlarm": (0, 900, 2),
    "DeliveryDeadLettersAlarm": (0, 300, 1),
    "EventsLostAlarm": (0, 300, 1),
    "FanOutFailedAlarm": (0, 300, 1),
    "FunctionErrorsAlarm": (5, 300, 1),
    "FunctionsThrottledAlarm": (0, 300, 3),
    "IntakeDeadLettersAlarm": (0, 300, 1),
    "IntakeDelayedAlarm": (900, 300, 2),
    "NewIntakeVersionErrorsAlarm": (0, 60, 5),
    "NewVersionErrorsAlarm": (0, 60, 5),
    "OvercommitAlarm": ({"Ref": "AlarmOvercommit"}, 900, 2),
    "PendingAlarm": ({"Ref": "AlarmPendingSeconds"}, 900, 1),
    "PreemptionsAlarm": ({"Ref": "AlarmPreemptions"}, 3600, 1),
    "PublishingStaleAlarm": (1, 900, 1),
    "ReconcileFailedAlarm": (0, 300, 1),
    "SchedulesDroppedAlarm": (0, 300, 1),
    "StarvationAlarm": (0, 900, 1),
}
"""What runbooks say in their first sentence: the threshold, the seconds of a period, and periods."""
OF_TASKS = {"OvercommitAlarm", "PendingAlarm", "PreemptionsAlarm", "StarvationAlarm"}
"""`test_task_alarms.py` lets them ring."""


def test_how_long_each_alarm_waits_is_written_down() -> None:
    assert ALARMS.keys() == WAITS.keys() | OF_TASKS


@pytest.mark.parametrize("name", sorted(WAITS))
def test_an_alarm_waits_as_long_as_its_runbook_says(name: str) -> None:
    alarm = ALARMS[name]
    metrics = metrics_of(name)
    stats = [one["MetricStat"]["Period"] for one in metrics if "MetricStat" in one]
    stats += [one["Period"] for one in metrics if "Period" in one]  # of a query
    (period,) = {alarm["Period"]} if "Period" in alarm else set(stats)
    assert (alarm["Threshold"], period, alarm["EvaluationPeriods"]) == WAITS[name]
    # One bad minute of five is enough where a deployment waits for the alarm.
    assert alarm.get("DatapointsToAlarm") == (1 if period == 60 else None)


@schedules
def test_a_schedule_has_a_role_retries_and_a_dead_letter_queue_but_where_a_minute_later_it_comes_again(
    name: str,
) -> None:
    target = SCHEDULES[name]["Target"]
    assert references(target["RoleArn"]) == {"ScheduleRole"}
    queues = set() if name in {"PublishUsageSchedule", "EstimateStartsSchedule"} else {"DeliveryDeadLetterQueue"}
    assert references(target.get("DeadLetterConfig")) == queues
    assert target["RetryPolicy"]["MaximumRetryAttempts"] > 0
    assert references(SCHEDULES[name]["GroupName"]) == {"Schedules"}
    assert SCHEDULES[name]["State"] == "ENABLED"


def test_the_schedules_start_the_fan_out_each_for_its_own_work() -> None:
    works = {name: json.loads(one["Target"]["Input"]) for name, one in SCHEDULES.items()}
    assert {references(one["Target"]["Arn"]).pop() for one in SCHEDULES.values()} == {"FanOutStateMachine"}
    assert {name: work["for"] for name, work in works.items()} == {
        "PublishUsageSchedule": "usage",
        "EstimateStartsSchedule": "starts",
        "ResyncAllSchedule": "resync",
        "AuditAllSchedule": "audit",
    }
    # What is delivered twice has the same moment (Scheduler, "Adding context attributes").
    assert {work["at"] for work in works.values()} == {"<aws.scheduler.scheduled-time>"}
    assert SCHEDULES["AuditAllSchedule"]["ScheduleExpressionTimezone"] == {"Ref": "TimeZone"}


def test_the_dashboard_shows_the_state_of_every_alarm(stack: Translated) -> None:
    (dashboard,) = stack.resources_of("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]
    (alarms,) = [one["properties"]["alarms"] for one in widgets if one["type"] == "alarm"]
    always = {
        name
        for name in stack.resources_of("AWS::CloudWatch::Alarm")
        if not stack.cfn["Resources"][name].get("Condition")
    }
    assert set(alarms) == {f"${{{name}.Arn}}" for name in always}  # one that is off has no ARN to show


def test_the_dashboard_is_json_and_shows_everything_that_is_measured(stack: Translated) -> None:
    (dashboard,) = stack.resources_of("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]
    shown = set(re.findall(r'MetricName=\\?"(\w+)', json.dumps(widgets).replace("\\\\", "\\")))
    measured = {one.name for one in vars(metric_catalogue).values() if isinstance(one, Metric)}
    assert shown <= measured
    assert shown == measured
    places = [(one["x"], one["y"]) for one in widgets]
    assert len(set(places)) == len(places)


def test_the_dashboard_shows_the_cluster_that_its_variable_names_and_labels_name_another(stack: Translated) -> None:
    (dashboard,) = stack.resources_of("AWS::CloudWatch::Dashboard").values()
    body = json.loads(dashboard["DashboardBody"]["Fn::Sub"])
    (variable,) = body["variables"]
    assert (variable["property"], variable["populateFrom"], variable["defaultValue"]) == (
        "Cluster",
        "Cluster",
        "__FIRST",
    )
    rows = [row[0] for one in body["widgets"] for row in one["properties"].get("metrics", ())]
    searches = [row for row in rows if isinstance(row, dict)]
    assert len(searches) > 20
    series = [one for one in searches if one["expression"].startswith("SEARCH(")]
    chosen = [one["label"] for one in series if 'Cluster="_"' in one["expression"]]
    assert [label for label in chosen if "Dim.Cluster" in label] == []
    assert all("Dim.Cluster" in one["label"] for one in series if one["label"] not in chosen)
    everywhere = [one["expression"] for one in searches if 'Cluster="_"' not in one["expression"]]
    assert sorted(re.findall(r'MetricName="(\w+)"', " ".join(everywhere))) == ["AuditsMissed", "ClusterUnreadable"]


def test_the_dashboard_begins_with_single_figures_however_many_teams_there_are(stack: Translated) -> None:
    (dashboard,) = stack.resources_of("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]
    figures = [one for one in widgets if one["properties"].get("view") == "singleValue"]
    below = max(one["y"] + one["height"] for one in figures)
    assert sum(one["width"] for one in figures) == 24
    assert all(one["y"] >= below for one in widgets if one not in figures)
    for (row,) in (metric for one in figures for metric in one["properties"]["metrics"]):
        # A search alone would be a figure for each team.
        assert re.fullmatch(r"(SUM|MAX)\(SEARCH\('[^']*', '\w+', 300\)\)", row["expression"])


def test_charts_of_the_dashboard_have_at_most_one_line_for_each_team(stack: Translated) -> None:
    """Ten teams are ten lines; what only happens now and then (a sum of events) is points."""
    (dashboard,) = stack.resources_of("AWS::CloudWatch::Dashboard").values()
    for widget in json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]:
        rows = [row[0] for row in widget["properties"].get("metrics", ()) if isinstance(row[0], dict)]
        of_teams = [
            row["expression"] for row in rows if "Dim.Team" in row["label"] and "'Sum'" not in row["expression"]
        ]
        assert len(of_teams) <= 1, widget["properties"]["title"]
        assert not widget["properties"].get("stacked") or len(rows) == 1


def test_widgets_of_the_dashboard_do_not_lie_on_one_another(stack: Translated) -> None:
    (dashboard,) = stack.resources_of("AWS::CloudWatch::Dashboard").values()
    widgets = json.loads(dashboard["DashboardBody"]["Fn::Sub"])["widgets"]
    cells = [
        (one["x"] + across, one["y"] + down)
        for one in widgets
        for across in range(one["width"])
        for down in range(one["height"])
    ]
    assert len(set(cells)) == len(cells)
    assert max(across for across, _ in cells) < 24


@pytest.mark.parametrize("name", sorted(PARAMETERS))
def test_a_parameter_is_described_bounded_and_has_a_default(name: str) -> None:
    parameter = PARAMETERS[name]
    assert parameter["Description"].endswith(".")
    assert "Default" in parameter
    bounds = {"AllowedValues", "AllowedPattern", "MinValue"} & set(parameter)
    assert bounds or parameter["Type"] == "CommaDelimitedList"
    if "AllowedPattern" in parameter:
        assert re.search(parameter["AllowedPattern"], parameter["Default"])
    if "AllowedValues" in parameter:
        assert parameter["Default"] in parameter["AllowedValues"]


def test_a_deployment_writes_no_quota_until_somebody_says_so() -> None:
    assert PARAMETERS["ApplyMode"]["Default"] == "plan"


SAMCONFIG: dict[str, Any] = tomllib.loads((ROOT / "samconfig.toml").read_text())


SENT = """
import json, sys
from samcli.commands.deploy.deploy_context import DeployContext
given = json.load(sys.stdin)
print(json.dumps(DeployContext.merge_parameters(given["template"], given["overrides"])))
"""


@pytest.mark.slow
@pytest.mark.parametrize("environment", ["default", "dev", "prod"])
def test_a_later_deployment_keeps_every_parameter_that_was_chosen(environment: str) -> None:
    settings = SAMCONFIG[environment]["deploy"]["parameters"]
    given = {"template": {"Parameters": PARAMETERS}, "overrides": settings.get("parameter_overrides", {})}
    sent = json.loads(run_with_sam(SENT, given=json.dumps(given)))
    assert {one["ParameterKey"] for one in sent if one.get("UsePreviousValue")} == set(PARAMETERS)
    assert settings["capabilities"] == "CAPABILITY_IAM"


def test_the_environments_are_different_stacks() -> None:
    names = [SAMCONFIG[name]["global"]["parameters"]["stack_name"] for name in ("default", "dev", "prod")]
    assert len(set(names)) == 3


def test_the_order_of_the_template_is_the_one_that_readers_expect() -> None:
    sections = re.findall(r"^([A-Z]\w+):", (ROOT / "template.yaml").read_text(), re.MULTILINE)
    assert sections == [
        "AWSTemplateFormatVersion",
        "Transform",
        "Description",
        "Metadata",
        "Parameters",
        "Rules",
        "Conditions",
        "Globals",
        "Resources",
        "Outputs",
    ]


def test_the_example_beside_hyperpod_gives_the_group_that_the_rbac_names() -> None:
    example = (ROOT / "examples" / "beside-hyperpod.yaml").read_text()
    (group,) = re.findall(r"KubernetesGroups: \[([a-z-]+)\]", example)
    assert f"name: {group}" in (ROOT / "docs" / "rbac.yaml").read_text()
    assert "amazon-sagemaker-hyperpod-taskgovernance" in example
    assert "KubernetesRoleArns" in load().cfn["Outputs"]
