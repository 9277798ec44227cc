"""A look at a cluster reads each workload as rarely as it can: the counts, not the time."""

import gc
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from taskgov.allocation.loaded import loaded_from
from taskgov.allocation.projection import model_of
from taskgov.kueue.named import owner_of
from taskgov.policy.notices import NoticeRules
from taskgov.scheduling import pod_forms, shapes
from taskgov.scheduling.kueue_forms import is_deep
from taskgov.scheduling.shapes import shape_of
from taskgov.scheduling.workload_forms import WorkloadForm
from taskgov.services.happenings import happenings
from taskgov.snapshot import forms
from taskgov.snapshot.derived import once
from taskgov.snapshot.forms import fault_of
from taskgov.snapshot.model import KubernetesObject, KueueObjects
from taskgov.snapshot.readable import readable_kueue
from taskgov.usage import workload_facts
from taskgov.usage.cluster_usage import cluster_usage, leading_usage
from taskgov.usage.starved import starved_teams
from taskgov.usage.workload_facts import WorkloadFacts, backlog_in, facts_in, facts_of
from tests.support.clusters import GPU, GovernedCluster
from tests.support.memory import NOON


def test_what_was_worked_out_is_given_again_until_the_objects_are_gone() -> None:
    asked: list[int] = []

    @once
    def queues(kueue: KueueObjects) -> int:
        asked.append(len(kueue.cluster_queues))
        return asked[-1]

    first = KueueObjects(cluster_queues=({},))
    assert [queues(first), queues(first)] == [1, 1]
    assert queues(replace(first, cluster_queues=({}, {}))) == 2
    assert asked == [1, 2]
    del first
    gc.collect()
    assert [queues(KueueObjects()) for _ in range(3)] == [0, 0, 0]


def test_a_minute_reads_each_workload_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = GovernedCluster().with_team("team-a").with_team("team-b")
    for number in range(4):
        cluster.with_waiting(f"waits-{number}", "team-a", gpus=8)
    read = list[str]()

    def counted(item: KubernetesObject) -> WorkloadFacts:
        found = facts_of(item)
        read.append(found.name)
        return found

    monkeypatch.setattr(workload_facts, "facts_of", counted)
    snapshot = cluster.snapshot()
    cluster_usage(snapshot, with_loans=False)
    starved_teams(snapshot)
    happenings(snapshot, (), {}, NoticeRules(pending_minutes=1))
    assert sorted(read) == [f"waits-{number}" for number in range(4)]


def test_each_object_of_a_snapshot_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = GovernedCluster().with_team("team-a").with_waiting("waits", "team-a", gpus=8)
    checked = list[str]()

    def counted(item: Any) -> bool:
        checked.append(item["metadata"]["name"])
        return is_plain(item)

    is_plain = WorkloadForm.is_plain
    monkeypatch.setattr(WorkloadForm, "is_plain", counted)
    monkeypatch.setattr(forms, "is_deep", lambda _: pytest.fail("a plain object is not searched for depth"))
    snapshot = cluster.snapshot()
    kueue, unreadable = readable_kueue(snapshot.kueue)
    model_of(replace(snapshot, kueue=kueue))
    assert (checked, unreadable) == (["waits"], ())


def test_a_workload_that_cannot_be_read_is_left_out_of_the_model_too() -> None:
    snapshot = GovernedCluster().with_team("team-a").with_waiting("waits", "team-a", gpus=8).snapshot()
    odd = {**snapshot.kueue.workloads[0], "spec": {"podSets": [{"count": -1}]}}
    snapshot = replace(snapshot, kueue=replace(snapshot.kueue, workloads=(*snapshot.kueue.workloads, odd)))
    loaded = loaded_from(snapshot, snapshot.instance_types)
    assert (loaded.unread, list(loaded.model.workloads())) == (("waits",), ["hyperpod-ns-team-a/waits"])


def test_loans_are_left_out_where_nothing_reads_them() -> None:
    snapshot = GovernedCluster().with_team("team-a").with_team("team-b").snapshot()
    assert cluster_usage(snapshot, with_loans=False) == replace(cluster_usage(snapshot), loans=())


def test_pods_of_one_shape_are_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[Any] = []

    class Counting:
        @staticmethod
        def validate_python(pod_sets: object, *, strict: bool) -> object:
            checked.append(pod_sets)
            return form.validate_python(pod_sets, strict=strict)

    form = pod_forms._FORM
    pod_forms.have_form.cache_clear()
    monkeypatch.setattr(pod_forms, "_FORM", Counting)
    cluster = GovernedCluster().with_team("team-a").with_team("team-b")
    for number in range(5):
        cluster.with_waiting(f"small-{number}", "team-a", gpus=1).with_waiting(f"large-{number}", "team-b", gpus=8)
    assert readable_kueue(cluster.snapshot().kueue)[1] == ()
    assert len(checked) == 2


@pytest.mark.parametrize("damage", [{"count": -1}, {"count": True}, {"template": {"spec": {"containers": 7}}}])
def test_pods_of_another_shape_are_checked_again(damage: dict[str, Any]) -> None:
    workload: Any = GovernedCluster().with_team("team-a").with_waiting("waits", "team-a", gpus=1).snapshot()
    workload = workload.kueue.workloads[0]
    assert fault_of("Workload", workload) is None
    workload["spec"]["podSets"][0].update(damage)
    assert str(fault_of("Workload", workload)).startswith(f"spec.podSets.0.{next(iter(damage))}")


@pytest.mark.parametrize(("levels", "is_read"), [(56, True), (57, False)])
def test_pods_count_from_the_top_of_their_workload(levels: int, *, is_read: bool) -> None:
    deep: list[Any] = []
    for _ in range(levels - 1):
        deep = [deep]
    workload = GovernedCluster().with_team("team-a").with_waiting("waits", "team-a", gpus=1).snapshot()
    item: Any = {**workload.kueue.workloads[0], "spec": {"podSets": [{"unknown": deep}]}}
    assert (is_deep(item), fault_of("Workload", item) is None) == (not is_read, is_read)


def test_the_usage_for_tables_is_that_of_leading_resources_without_loans() -> None:
    cluster = GovernedCluster().with_fair_share().with_nodes(2).with_nodes(1, instance_type="ml.c5.2xlarge")
    cluster.with_team("team-a", used={GPU: "6", "cpu": "72"}).with_team("team-b", used={GPU: "1"})
    cluster.with_waiting("waits", "team-b", gpus=9).with_preempted("leaves", "team-b", by="team-a", gpus=2)
    snapshot = cluster.snapshot()
    whole = cluster_usage(snapshot)
    assert whole.loans
    assert whole.preemptions
    leading = tuple(team for team in whole.teams if team.leading)
    assert leading_usage(snapshot) == replace(whole, loans=(), teams=leading)


def test_what_waits_for_one_queue_with_the_same_request_is_put_together_with_its_oldest() -> None:
    cluster = GovernedCluster().with_fair_share().with_nodes(2).with_team("team-a").with_team("team-b")
    for name, team, gpus, minutes in (("a", "team-a", 2, 5), ("b", "team-a", 2, 50), ("c", "team-a", 8, 7)):
        cluster.with_waiting(name, team, gpus=gpus, minutes=minutes)
    snapshot = cluster.with_waiting("d", "team-b", gpus=2, minutes=9).snapshot()
    assert [waiting.workloads for waiting in backlog_in(snapshot.kueue)] == [2, 1, 1]
    pending = leading_usage(snapshot).pending
    assert pending == cluster_usage(snapshot).pending
    counts = [(team.team, team.workloads, team.accelerators, team.oldest_wait(NOON)) for team in pending]
    assert counts == [("team-a", 3, 12, timedelta(minutes=50)), ("team-b", 1, 2, timedelta(minutes=9))]


@pytest.mark.parametrize("seed", range(15))
def test_in_any_world_the_usage_for_tables_is_that_of_reading_all_workloads(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - worlds, no secrets
    teams = [f"team-{number}" for number in range(chance.randint(1, 4))]
    cluster = GovernedCluster().with_fair_share().with_nodes(chance.randint(0, 3))
    for team in teams:
        cluster.with_team(team, used={GPU: str(chance.randint(0, 3))})
    for number in range(chance.randint(0, 30)):
        minutes = chance.randint(0, 500)
        cluster.with_waiting(f"waits-{number}", chance.choice(teams), gpus=chance.randint(0, 2), minutes=minutes)
    for number in range(chance.randint(0, 5)):
        ran = chance.choice([None, 5, 90])
        cluster.with_preempted(f"leaves-{number}", chance.choice(teams), by=teams[0], gpus=1, ran_minutes=ran)
    snapshot = cluster.snapshot()
    for workload in snapshot.kueue.workloads:
        _make_odd(workload, chance)
    whole, fresh = cluster_usage(snapshot), replace(snapshot, kueue=replace(snapshot.kueue))
    leading = tuple(team for team in whole.teams if team.leading)
    assert leading_usage(fresh) == replace(whole, loans=(), teams=leading)
    waiting = [facts for facts in facts_in(snapshot.kueue) if facts.waiting_since is not None]
    assert sum(some.workloads for some in backlog_in(snapshot.kueue)) == len(waiting)


def _make_odd(workload: Any, chance: random.Random) -> None:
    match chance.randrange(8):
        case 0:
            workload["spec"]["active"] = False
        case 1 | 2 as number:
            since = f"2026-11-20T09:{chance.randrange(60):02}:00Z"
            condition = {"type": ("Finished", "Evicted")[number - 1], "status": "True", "lastTransitionTime": since}
            workload.setdefault("status", {}).setdefault("conditions", []).append(condition)
        case 3:
            workload["spec"].pop("queueName")
        case 4:
            workload["spec"]["podSets"] = []
        case _:
            """Most workloads stay as they are."""


def test_the_usage_for_tables_reads_whole_what_was_preempted(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = GovernedCluster().with_team("team-a").with_waiting("waits", "team-a", gpus=8)
    cluster.with_waiting("runs", "team-a", gpus=1).with_preempted("leaves", "team-a", by="team-a", gpus=1)
    snapshot = cluster.snapshot()
    running: Any = snapshot.kueue.workloads[1]
    running["status"] = {"conditions": [{"type": "QuotaReserved", "status": "True"}]}
    read = list[str]()

    def counted(item: KubernetesObject) -> Any:
        read.append(item["metadata"]["name"])
        return owner_of(item)

    monkeypatch.setattr(workload_facts, "owner_of", counted)
    assert [team.workloads for team in leading_usage(snapshot).pending] == [1]
    assert read == ["leaves"]


def test_check_usage_and_model_compute_the_shape_of_pods_once_for_each_workload(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = GovernedCluster().with_team("team-a").with_waiting("a", "team-a", gpus=8)
    snapshot = cluster.with_waiting("b", "team-a", gpus=8).snapshot()
    computed: list[Any] = []

    def counted(value: Any) -> bytes | None:
        computed.append(value)
        return shape_of(value)

    kueue = replace(snapshot.kueue)  # nobody has looked at it
    monkeypatch.setattr(shapes, "shape_of", counted)
    assert readable_kueue(kueue) == (kueue, ())
    leading_usage(replace(snapshot, kueue=kueue))
    assert len(list(model_of(replace(snapshot, kueue=kueue)).workloads())) == 2
    assert len(computed) == 2
