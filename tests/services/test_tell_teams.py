"""What teams are told of in time: once each, whatever comes twice, fails, dies or is lost on the way."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from taskgov.contracts.steps import PublishUsageRequest
from taskgov.errors import InvalidRequestError, NotFoundError, UpstreamError
from taskgov.services.happenings import preempted_id
from taskgov.services.tell_teams import KEY, TellTeams
from taskgov.services.told_memory import ToldMemory
from taskgov.snapshot.model import Snapshot
from taskgov.usage.starved import starved_teams
from taskgov.usage.workload_facts import facts_in
from taskgov.usage.workloads import preemptions_of
from tests.support.clusters import G5, GPU, GovernedCluster
from tests.support.memory import CLUSTER_ARN, NOON, RecordingBus, RecordingFailures, RecordingMeter, RecordingTopics

TOPIC = "arn:aws:sns:us-east-1:111122223333:taskgov-team-"
MEMORY = KEY.format("ml-cluster")
JOB_1 = (
    "job-1 (Workload, requests 2 GPUs, 4 cpu) was preempted at 2026-11-20 11:55 UTC for team-b: "
    "quota that it borrowed was reclaimed (InCohortReclamation)."
)
BOTH = {"everyTeam": f"{TOPIC}{{team}}", "chat": {"everyTeam": f"{TOPIC}{{team}}-chat"}}


@dataclass
class Told:
    """A cluster that is looked at each minute, and what comes out of it."""

    cluster: GovernedCluster = field(default_factory=GovernedCluster)
    bus: RecordingBus = field(default_factory=RecordingBus)
    topics: RecordingTopics = field(default_factory=RecordingTopics)

    def __post_init__(self) -> None:
        self.cluster.with_fair_share().with_nodes(2).with_team("team-a").with_team("team-b")

    def with_notices(self, **notices: Any) -> "Told":
        document = {
            "apiVersion": "taskgov/v1",
            "cluster": {"name": "ml-cluster", "arn": CLUSTER_ARN},
            "teams": [
                {"name": name, "quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 1}]}}
                for name in ("team-a", "team-b")
            ],
            "notices": notices or BOTH,
        }
        self.cluster.documents.stored["policies/ml-cluster.yaml"] = yaml.safe_dump(document).encode()
        assert self.cluster.snapshot().policy is not None
        return self

    @property
    def tell(self) -> TellTeams:
        world = self.cluster
        return TellTeams(world.documents, world.state, self.bus, self.topics, world.clock)

    def look(self, minutes: float = 1) -> tuple[str, ...]:
        """Let time pass, then look and tell."""
        self.cluster.clock.advance(minutes=minutes)
        return self.tell_of(self.cluster.snapshot())

    def tell_of(self, snapshot: Snapshot) -> tuple[str, ...]:
        counted = frozenset(map(preempted_id, preemptions_of(facts_in(snapshot.kueue))))
        return self.tell(snapshot, starved_teams(snapshot), counted)

    @property
    def events(self) -> list[tuple[str, str]]:
        return [(name, detail.get("task") or detail["team"]) for name, detail in self.bus.published]

    @property
    def mails(self) -> list[str]:
        return [text for _, _, text in self.topics.sent]

    @property
    def memory(self) -> ToldMemory:
        return ToldMemory.from_json(self.cluster.documents.find(MEMORY))


def preempted() -> Told:
    told = Told().with_notices()
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2)
    return told


def test_an_event_names_twenty_resources_accelerators_first() -> None:
    """A job may request thousands: with all of them its event is refused, and with it those of its call."""
    told = preempted()
    containers = told.cluster.workloads[-1]["spec"]["podSets"][0]["template"]["spec"]["containers"]
    containers[0]["resources"]["requests"].update({f"a.example.com/{number:05}": "1" for number in range(8000)})
    assert told.look() == ()
    [(_, detail)] = told.bus.published
    assert len(detail["asks"]) == 20
    assert detail["asks"]["nvidia.com/gpu"] == "2"
    assert len(json.dumps(detail)) < 10_000


def test_a_preemption_is_an_event_and_a_notice_in_both_forms() -> None:
    told = preempted()
    assert told.look() == ()
    [(name, detail)] = told.bus.published
    assert name == "Task Preempted"
    assert {key: detail[key] for key in ("team", "task", "reason", "preemptingTeam", "asks", "at")} == {
        "team": "team-a",
        "task": "job-1",
        "reason": "InCohortReclamation",
        "preemptingTeam": "team-b",
        "asks": {"cpu": "4", "nvidia.com/gpu": "2"},
        "at": "2026-11-20T11:55:00Z",
    }
    [(topic, subject, text)] = told.topics.sent
    assert (topic, subject) == (f"{TOPIC}team-a", "taskgov: team-a on ml-cluster: 1 task preempted")
    assert text.splitlines() == [
        "Cluster ml-cluster, team team-a",
        "",
        JOB_1,
        "",
        "Why: taskgov explain team-a/job-1 --cluster ml-cluster",
    ]
    [(chat_topic, message)] = told.topics.chats
    assert (chat_topic, message["version"], message["source"]) == (f"{TOPIC}team-a-chat", "1.0", "custom")


def test_a_cluster_without_a_document_has_its_events_and_notifies_nobody() -> None:
    told = Told()
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2)
    told.look()
    assert (told.events, told.topics.sent, told.topics.chats) == ([("Task Preempted", "job-1")], [], [])


def test_topics_in_the_old_place_get_nothing_new() -> None:
    told = preempted()
    policy = yaml.safe_load(told.cluster.documents.stored["policies/ml-cluster.yaml"])
    policy["audit"] = {"notices": {"everyTeam": policy.pop("notices")["everyTeam"]}}
    told.cluster.documents.stored["policies/ml-cluster.yaml"] = yaml.safe_dump(policy).encode()
    told.look()
    assert (told.events, told.topics.sent) == ([("Task Preempted", "job-1")], [])


def test_what_is_seen_again_is_not_reported_again_and_costs_no_write() -> None:
    told = preempted()
    told.look()
    before = dict(told.cluster.documents.stored)
    for _ in range(5):
        told.look()
    assert (len(told.bus.published), len(told.topics.sent), len(told.topics.chats)) == (1, 1, 1)
    assert told.cluster.documents.stored == before


def test_a_workload_that_is_preempted_twice_is_reported_twice() -> None:
    told = preempted()
    told.look()
    told.cluster.workloads.clear()
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2, minutes=-10)
    told.look(11)
    assert [detail["at"] for _, detail in told.bus.published] == ["2026-11-20T11:55:00Z", "2026-11-20T12:10:00Z"]
    assert len(told.mails) == 2


def test_a_preemption_of_yesterday_is_not_reported() -> None:
    told = Told().with_notices()
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2, minutes=24 * 60)
    told.look()
    assert (told.events, told.mails) == ([], [])


@dataclass
class DyingTopics(RecordingTopics):
    """The function dies once, before or after it has sent the first message."""

    after_sending: bool = False

    def send(self, topic_arn: str, subject: str, text: str) -> None:
        if self.after_sending:
            super().send(topic_arn, subject, text)
        self.send = super().send  # type: ignore[method-assign]
        raise KeyboardInterrupt


@pytest.mark.parametrize(("after_sending", "mails"), [(False, 1), (True, 2)], ids=["before", "in the very moment"])
def test_a_function_that_dies_while_it_notifies_loses_nothing(after_sending: bool, mails: int) -> None:
    told = preempted()
    told.topics = DyingTopics(after_sending=after_sending)
    with pytest.raises(KeyboardInterrupt):
        told.look()
    told.look(4)
    assert len(told.mails) == mails
    assert {detail["id"] for _, detail in told.bus.published} == {"preempted-uid-job-1#2026-11-20T11:55:00Z"}
    told.look()
    assert (len(told.mails), len(told.topics.chats)) == (mails, 1)


def test_a_turn_of_a_dead_function_is_waited_for_and_then_taken() -> None:
    told = preempted()
    assert told.cluster.state.take_turn(CLUSTER_ARN, NOON) is not None
    told.look(1)
    assert told.events == []
    told.look(2)
    assert told.events == [("Task Preempted", "job-1")]


@dataclass
class MeanwhileBus(RecordingBus):
    """While this look tells, another one comes."""

    other: Any = None

    def publish_all(self, events: Any) -> Mapping[int, str]:
        other, self.other = self.other, None
        if other:
            other()
        return super().publish_all(events)


def test_two_looks_at_the_same_time_report_once() -> None:
    told = preempted()
    told.bus = MeanwhileBus(other=lambda: told.look(0))
    told.look()
    told.look()
    assert (len(told.bus.published), len(told.mails), len(told.topics.chats)) == (1, 1, 1)


def test_a_look_that_was_taken_before_another_reported_reports_nothing_again() -> None:
    told = preempted()
    old = told.cluster.snapshot()
    told.look()
    told.tell_of(old)
    assert (len(told.bus.published), len(told.mails)) == (1, 1)


def waiting(minutes: int = 61, **notices: Any) -> Told:
    told = Told().with_notices(**{**BOTH, "pendingMinutes": 60, **notices})
    told.cluster.with_waiting("job-2", "team-a", gpus=8, minutes=minutes)
    return told


def test_a_wait_is_reported_once_when_it_is_longer_than_the_limit() -> None:
    told = waiting(58)
    told.look(2)
    assert told.events == []  # an hour is not longer than an hour
    for _ in range(10):
        told.look()
    [(name, detail)] = told.bus.published
    assert (name, detail["since"], detail["limitMinutes"], detail["evicted"]) == (
        "Task Waiting Too Long",
        "2026-11-20T11:02:00Z",
        60,
        False,
    )
    [text] = told.mails
    assert (
        "job-2 (Workload, requests 8 GPUs, 4 cpu) was waiting since 2026-11-20 11:02 UTC: longer than 60 minutes."
        in text
    )


def test_without_a_limit_no_wait_is_too_long() -> None:
    told = Told().with_notices()
    told.cluster.with_waiting("job-2", "team-a", gpus=8, minutes=100_000)
    told.look()
    assert told.events == []


def test_after_a_preemption_the_wait_begins_anew() -> None:
    told = waiting(61)
    told.look()
    told.cluster.workloads.clear()
    told.cluster.with_preempted("job-2", "team-a", by="team-b", gpus=8, minutes=-5, ran_minutes=None)
    told.look(10)
    assert [name for name, _ in told.events] == ["Task Waiting Too Long", "Task Preempted"]
    told.look(54)
    assert len(told.events) == 2
    told.look(2)
    assert [name for name, _ in told.events][2:] == ["Task Waiting Too Long"]
    assert told.bus.published[2][1]["evicted"] is True
    assert "when it was evicted" in told.mails[-1]


def test_a_limit_that_is_lowered_reports_no_wait_a_second_time() -> None:
    told = waiting(61)
    told.look()
    told.with_notices(**BOTH, pendingMinutes=30)
    told.look()
    assert len(told.events) == 1


def starved() -> Told:
    told = Told().with_notices()
    told.cluster.used["team-b"] = {G5: {GPU: "6"}}
    told.cluster.with_waiting("job-3", "team-a", gpus=4)
    return told


def test_starvation_is_reported_once_when_it_has_lasted() -> None:
    told = starved()
    for _ in range(5):
        told.look()
    assert told.events == []
    for _ in range(10):
        told.look()
    [(name, detail)] = told.bus.published
    assert (name, detail["team"], detail["instanceType"], detail["reclaimable"]) == ("Team Starved", "team-a", G5, 2)
    assert detail["since"] == "2026-11-20T12:01:00Z"
    [text] = told.mails
    assert "team-a was starved since 2026-11-20 12:01 UTC: it waited for 4 GPUs" in text
    assert text.endswith("Why: taskgov explain --team team-a --cluster ml-cluster")


def test_starvation_that_ends_and_comes_again_is_another_one() -> None:
    told = starved()
    for _ in range(7):
        told.look()
    told.cluster.used["team-b"] = {G5: {GPU: "4"}}
    told.look()
    told.cluster.used["team-b"] = {G5: {GPU: "6"}}
    for _ in range(7):
        told.look()
    assert [detail["since"] for _, detail in told.bus.published] == ["2026-11-20T12:01:00Z", "2026-11-20T12:09:00Z"]


def test_work_that_waits_for_another_type_is_not_starved() -> None:
    told = starved()
    pods = told.cluster.workloads[0]["spec"]["podSets"][0]["template"]["spec"]
    pods["nodeSelector"] = {"node.kubernetes.io/instance-type": "ml.p5.48xlarge"}
    for _ in range(8):
        told.look()
    assert told.events == []


@pytest.mark.parametrize("told", [preempted, waiting, starved])
def test_with_its_memory_lost_it_reports_nothing_twice(told: Any) -> None:
    world: Told = told()
    for _ in range(8):
        world.look()
    assert len(world.bus.published) == 1
    del world.cluster.documents.stored[MEMORY]
    for _ in range(8):
        world.look()
    assert (len(world.bus.published), len(world.mails), len(world.topics.chats)) == (1, 1, 1)


def test_with_its_memory_lost_it_reports_what_is_new() -> None:
    told = preempted()
    told.look()
    del told.cluster.documents.stored[MEMORY]
    told.cluster.with_preempted("job-9", "team-a", by="team-b", gpus=1)
    told.look()
    assert told.events == [("Task Preempted", "job-1"), ("Task Preempted", "job-9")]


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"version": 2}', b'{"version": 1, "told": 3}', b"\xff"])
def test_a_damaged_memory_is_an_error_that_names_it_and_the_remedy(body: bytes) -> None:
    told = preempted()
    told.cluster.documents.stored[MEMORY] = body
    with pytest.raises(InvalidRequestError, match=r"memory/ml-cluster/told\.json cannot be read .* delete it"):
        told.look()


def test_events_that_the_bus_does_not_take_are_an_error_and_come_with_the_next_look() -> None:
    told = preempted()
    told.cluster.with_preempted("job-9", "team-a", by="team-b", gpus=1)
    told.bus.refuses = 1
    with pytest.raises(UpstreamError, match="1 of 2 events were not taken by the bus: ThrottlingException"):
        told.look()
    assert len(told.mails) == 1  # people do not wait for the bus
    told.look()
    assert sorted(task for _, task in told.events) == ["job-1", "job-9"]
    assert len(told.mails) == 1


def test_a_topic_that_cannot_be_reached_is_named_and_notified_later_and_holds_up_no_other() -> None:
    told = preempted()
    told.topics.fails[f"{TOPIC}team-a"] = NotFoundError("no such topic")
    assert told.look() == (f"{TOPIC}team-a, of team-a: no such topic",)
    assert (len(told.topics.sent), len(told.topics.chats), len(told.bus.published)) == (0, 1, 1)
    told.topics.fails.clear()
    assert told.look() == ()
    assert (len(told.topics.sent), len(told.topics.chats), len(told.bus.published)) == (1, 1, 1)


def test_a_topic_outside_the_stack_s_reach_is_never_written_to() -> None:
    told = Told().with_notices(teams={"team-a": "arn:aws:sns:us-east-1:111122223333:payroll"})
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2)
    assert told.look() == ()
    assert (told.topics.sent, len(told.bus.published)) == ([], 1)


def test_a_topic_that_is_taken_out_of_the_document_forgets_what_was_held_for_it() -> None:
    told = preempted()
    told.topics.fails[f"{TOPIC}team-a"] = NotFoundError("no such topic")
    told.look()
    told.with_notices(about=["preempted"])
    assert told.look() == ()
    assert told.memory.held == {}


def test_in_quiet_hours_the_bus_gets_events_at_once_and_people_get_one_notice_afterwards() -> None:
    quiet = [{"from": "12:00", "to": "14:00"}]
    told = waiting(58, quietHours=quiet)
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2)
    for _ in range(100):
        told.look()
    assert sorted(task for _, task in told.events) == ["job-1", "job-2"]
    assert (told.mails, told.topics.chats) == ([], [])
    for _ in range(30):
        told.look()
    [(_, subject, text)] = told.topics.sent
    assert subject == "taskgov: team-a on ml-cluster: 1 task preempted, 1 task waiting too long"
    assert "job-1" in text
    assert "job-2" in text
    assert len(told.topics.chats) == 1


def test_thousands_in_a_minute_are_one_notice_with_the_first_and_a_number() -> None:
    told = Told().with_notices()
    for number in range(1600):
        told.cluster.with_preempted(f"job-{number:04}", "team-a", by="team-b", gpus=1)
    told.look()
    assert len({detail["id"] for _, detail in told.bus.published}) == len(told.bus.published) == 1600
    [(_, subject, text)] = told.topics.sent
    assert subject == "taskgov: team-a on ml-cluster: 1,600 tasks preempted"
    lines = text.splitlines()
    assert ([line for line in lines if line.startswith("job-")][-1][:8], lines[22]) == ("job-0019", "and 1,580 more")
    [(_, message)] = told.topics.chats
    assert message["content"]["description"].endswith(" more")
    assert len(json.dumps(message)) < 8_000
    told.look()
    assert (len(told.bus.published), len(told.mails)) == (1600, 1)


def test_more_than_a_look_can_report_is_reported_by_the_next_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("taskgov.services.tell_teams.MOST_AT_ONCE", 30)
    told = Told().with_notices()
    for number in range(70):
        told.cluster.with_preempted(f"job-{number:04}", "team-a", by="team-b", gpus=1)
    for _ in range(5):
        told.look()
    assert len({detail["id"] for _, detail in told.bus.published}) == len(told.bus.published) == 70


def test_beyond_the_number_for_an_hour_notices_are_gathered() -> None:
    told = Told().with_notices(**BOTH, noticesPerHour=2)
    for number in range(10):
        told.cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=1, minutes=-number)
        told.look()
    assert (len(told.bus.published), len(told.mails), len(told.topics.chats)) == (10, 2, 2)
    told.look(60)
    assert [text.count("was preempted") for text in told.mails] == [1, 1, 8]


def test_each_team_is_notified_of_its_own_only() -> None:
    told = preempted()
    told.cluster.with_preempted("job-b", "team-b", by="team-a", gpus=1)
    told.look()
    assert [(topic, "job-1" in text, "job-b" in text) for topic, _, text in told.topics.sent] == [
        (f"{TOPIC}team-a", True, False),
        (f"{TOPIC}team-b", False, True),
    ]


def test_the_preemptor_s_class_is_reported_while_it_is_there() -> None:
    told = preempted()
    told.cluster.with_waiting("urgent", "team-b", gpus=2)
    told.cluster.workloads[-1]["metadata"]["uid"] = "uid-preemptor"
    told.cluster.workloads[-1]["metadata"]["labels"] = {"kueue.x-k8s.io/priority-class": "inference-priority"}
    told.look()
    assert told.bus.published[0][1]["preemptingPriorityClass"] == "inference-priority"
    assert "for team-b (class inference-priority)" in told.mails[0]


def test_the_memory_survives_its_own_form() -> None:
    told = waiting(61, quietHours=[{"from": "12:00", "to": "14:00"}])
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2)
    told.look()
    memory = told.memory
    assert memory.held
    assert ToldMemory.from_json(memory.to_json()) == memory


def test_identities_that_are_gone_are_forgotten_in_time() -> None:
    told = preempted()
    told.look()
    told.cluster.workloads.clear()
    told.cluster.with_preempted("other", "team-a", by="team-b", gpus=1, minutes=-3 * 24 * 60)
    told.look(3 * 24 * 60)
    assert set(told.memory.told) == {"preempted-uid-other#2026-11-23T12:00:00Z"}


def test_usage_is_measured_and_counted_whatever_becomes_of_telling() -> None:
    told = preempted()
    told.cluster.documents.stored[MEMORY] = b"damaged"
    meter, failures = RecordingMeter(), RecordingFailures()
    publish = told.cluster.publish_usage(bus=told.bus, topics=told.topics, meter=meter, failures=failures)
    assert publish(PublishUsageRequest()).published > 0
    assert [each.value for _, each in meter.recorded if each.name == "Preemptions"] == [1]
    assert failures.reported == [("ml-cluster", "notify teams", "InvalidRequestError")]


def test_topics_that_are_not_notified_are_logged_and_measured() -> None:
    told = preempted()
    told.topics.fails[f"{TOPIC}team-a"] = NotFoundError("no such topic")
    meter, failures = RecordingMeter(), RecordingFailures()
    told.cluster.publish_usage(bus=told.bus, topics=told.topics, meter=meter, failures=failures)(PublishUsageRequest())
    assert [each.value for _, each in meter.recorded if each.name == "NoticesFailed"] == [1]
    assert failures.not_told == [("ml-cluster", f"{TOPIC}team-a, of team-a: no such topic")]


def test_odd_workloads_are_reported_like_others() -> None:
    told = preempted()
    odd = told.cluster.workloads[0]
    odd["metadata"].pop("uid")
    odd["metadata"]["ownerReferences"] = [
        {"kind": "PyTorchJob", "name": "x\n<!channel> `@here`\u202e", "controller": True}
    ]
    told.look()
    [text] = told.mails
    assert "x\\n<!channel> `@here`\\u202e (PyTorchJob" in text
    description = told.topics.chats[0][1]["content"]["description"]
    assert "- `x\\n&lt;!channel&gt; '@here'\\u202e` (`PyTorchJob`" in description


def test_the_clock_of_the_cluster_may_be_ahead() -> None:
    told = Told().with_notices()
    told.cluster.with_preempted("job-1", "team-a", by="team-b", gpus=2, minutes=-3)
    told.look()
    told.look(5)
    assert len(told.bus.published) == 1


TROUBLES = ("nothing", "dies before a notice", "dies after a notice", "memory is lost", "bus refuses", "topic refuses")


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(TROUBLES)), max_size=8))
@settings(max_examples=40, deadline=None)
def test_whatever_goes_wrong_each_preemption_is_reported_and_only_a_death_reports_again(
    minutes: list[tuple[int, str]],
) -> None:
    told, topics, deaths, number = Told(), RecordingTopics(), 0, 0
    told.with_notices(**BOTH, linesPerNotice=100, noticesPerHour=60)
    for new, trouble in minutes:
        for _ in range(new):
            told.cluster.with_preempted(f"job-{number}", "team-a", by="team-b", gpus=1)
            number += 1
        dies = trouble.startswith("dies")
        told.topics = DyingTopics(after_sending=trouble == "dies after a notice") if dies else topics
        told.topics.sent, told.topics.chats = topics.sent, topics.chats
        topics.fails = {f"{TOPIC}team-a": NotFoundError("gone")} if trouble == "topic refuses" else {}
        told.bus.refuses = 1 if trouble == "bus refuses" else 0
        if trouble == "memory is lost" and not told.memory.due and not told.memory.held:
            told.cluster.documents.stored.pop(MEMORY, None)
        try:
            told.look()
        except KeyboardInterrupt:
            deaths += 1
        except UpstreamError:
            assert trouble == "bus refuses"
    told.topics, topics.fails, told.bus.refuses = topics, {}, 0
    for _ in range(4):  # a dead function's turn ends after three minutes
        told.look()
    ids = [detail["id"] for _, detail in told.bus.published]
    assert len(set(ids)) == number
    assert len(ids) == number  # the bus has taken them before anything is sent to people
    named = [line.split()[0] for text in told.mails for line in text.splitlines() if "was preempted" in line]
    assert set(named) == {f"job-{n}" for n in range(number)}
    assert len(named) - number <= 20 * deaths
    assert deaths or len(named) == number
