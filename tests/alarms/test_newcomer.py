"""A newcomer's day: the stack first, access an hour later, and an account with clusters that are nobody's business.

At its end every alarm is OK but those that should ring, and nobody was told of anything else meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.alarms.newcomer import HOUR, Account

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.long

LOCKED = {"ClusterUnreadableAlarm", "ClusterStaleAlarm"}
"""What rings all day for a governed cluster that nobody lets the functions into."""


@pytest.fixture(scope="module")
def day() -> Iterator[Account]:
    # As rarely as docs/runbooks allow (publishing-stale.md, cluster-stale.md): looks cost more than all else.
    schedules = {"PublishSchedule": "rate(14 minutes)", "ResyncSchedule": "rate(100 minutes)"}
    with Account(schedules | {"AuditSchedule": "cron(0 14 * * ? *)"}) as account:
        good, locked = account.add_cluster("good"), account.add_cluster("locked")
        account.add_cluster("somebody-elses")
        account.add_cluster("slurm", extra={"Orchestrator": {"Slurm": {}}})
        account.put_document(good)
        account.put_document(locked)
        account.stack.advance(HOUR)
        account.give_access("good")
        account.stack.advance(23 * HOUR)
        yield account


def test_at_the_end_of_the_day_those_alarms_ring_that_should(day: Account) -> None:
    assert day.stack.alarms.ringing() == LOCKED


def test_meanwhile_one_missed_audit_was_reported_and_is_over(day: Account) -> None:
    told = {alarm for alarm in day.alarms() if "ALARM" in day.stack.alarms.changes(alarm)}
    assert told - LOCKED <= {"AuditMissedAlarm", "PublishingStaleAlarm"}
    assert day.stack.alarms.changes("AuditMissedAlarm") == ["OK", "ALARM", "OK"]


def test_no_function_fails_because_a_cluster_cannot_be_read(day: Account) -> None:
    assert [(result.function, result.value) for result in day.stack.results if result.is_error] == []


def test_clusters_that_nobody_took_in_cost_nothing(day: Account) -> None:
    described = {call.params.get("ClusterName") for call in day.stack.calls if call.operation == "DescribeCluster"}
    by_name = {cluster.name: cluster.arn for cluster in day.stack.sagemaker.clusters.by_arn.values()}
    assert by_name["good"] in described
    assert not {by_name["somebody-elses"], by_name["slurm"]} & described


def test_every_alarm_is_evaluated_and_notifies_the_topic_under_its_policies(day: Account) -> None:
    assert {day.stack.alarms.state(alarm) for alarm in day.alarms()} == {"OK", "ALARM"}
    assert [moment.what for moment in day.stack.timeline.of("denied")] == []
    sent = [call.params["Subject"] for call in day.stack.calls if (call.service, call.operation) == ("sns", "Publish")]
    assert any(subject.startswith("ALARM") and "ClusterStaleAlarm" in subject for subject in sent)
    assert any(subject.startswith("OK") and "AuditMissedAlarm" in subject for subject in sent)
