"""What a member of one team sees, with the rights of a member alone: their own, and what is not visible by name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from taskgov_embedded.cluster.access import VIEWERS
from taskgov_embedded.cluster.manifests import job_manifest
from tests.support.members import LEADS, SCIENTISTS, become, let_in, team_cluster
from tests.support.operating import taskgov

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from taskgov_embedded.walkthrough.world import World

pytestmark = pytest.mark.long

LIVE = ("--cluster", "ml-cluster")


def submit(world: World, team: str, name: str, pods: int, by: str = "", **more: Any) -> None:
    manifest = job_manifest(team, name, {"nvidia.com/gpu": "1"}, pods=pods, **more)
    if by:
        manifest["metadata"]["annotations"] = {"taskgov/submitted-by": by}
    world.cluster.submit(manifest)
    world.stack.run_until_quiet(60)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with team_cluster() as made:
        submit(made, "team-a", "borrows", 3, by="ana")
        submit(made, "team-b", "secret-of-b", 1, by="arn:aws:sts::111122223333:assumed-role/Scientists/ana")
        submit(made, "team-a", "waits", 2, by="somebody")
        submit(made, "team-a", "nobodys", 2)
        let_in(made, "team-a")
        let_in(made, "team-b")
        yield made


@pytest.fixture
def member(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    return become(world, monkeypatch, SCIENTISTS, "TeamMemberPolicy", "taskgov-team-a", team="team-a")


def lines(*arguments: str) -> list[str]:
    result = taskgov(*arguments)
    assert result.exit_code == 0, result.output
    return [" ".join(line.split()) for line in result.output.splitlines()]


@pytest.fixture
def lead(world: World, monkeypatch: pytest.MonkeyPatch) -> str:
    return become(world, monkeypatch, LEADS, "TeamLeadPolicy", VIEWERS)


def data(*arguments: str) -> Any:
    result = taskgov(*arguments, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def refused(*arguments: str) -> tuple[int, str]:
    result = taskgov(*arguments)
    assert "Traceback" not in result.output
    return result.exit_code, " ".join(result.output.replace("│", " ").split())


@pytest.mark.usefixtures("member")
class TestAMember:
    """A data scientist of team-a."""

    def test_status_shows_the_own_team_and_names_what_is_not_visible(self) -> None:
        _, _, *rows = lines("status", *LIVE, "--team", "team-a")
        assert rows == [
            "team instance type quota used unused beyond quota",
            "team-a ml.g5.8xlarge 2 3 0 1",
            "team-a: 2 tasks wait, for 4 accelerators",
            "Not visible with your rights:",
            "tasks of other teams: who holds what, and which tasks are before yours in line",
            "other teams' quotas: what is lent, idle, borrowed, from whom, and the fair shares",
            "cohorts: quota that belongs to no team",
            "whether there are machines for admitted tasks: other teams' tasks hold machines too",
        ]

    def test_json_has_no_number_that_needs_the_other_teams(self) -> None:
        found = data("status", *LIVE, "--team", "team-a")
        (line,) = found["teams"]
        assert line.keys() == {
            "team",
            "instanceType",
            "resource",
            "quota",
            "used",
            "unused",
            "beyondQuota",
        }
        assert found["pending"][0]["workloads"] == 2
        assert len(found["notVisible"]) == 4

    def test_jobs_lists_the_own_team_with_what_it_borrows(self) -> None:
        found = data("jobs", *LIVE, "--team", "team-a")
        assert [(each["job"], each["state"], each["beyondQuota"]) for each in found["tasks"]] == [
            ("borrows", "running", {"nvidia.com/gpu": 1}),
            ("nobodys", "pending", {}),
            ("waits", "pending", {}),
        ]
        assert found["notVisible"][0].startswith("tasks of other teams")

    def test_what_waits_is_explained_in_kueues_words(self) -> None:
        head, because, *rest = lines("explain", "team-a/waits", *LIVE)
        assert head == "team-a/waits: WaitingForQuota"
        assert because.startswith("Kueue says: couldn't assign flavors to pod set worker: insufficient unused quota")
        assert "Next step: wait; a person who sees all teams gets more details (taskgov explain)." in rest
        assert "other teams' quotas: what is lent, idle, borrowed, from whom, and the fair shares" in rest
        assert lines("explain", "waits", "--team", "team-a", *LIVE)[0] == head

    def test_what_runs_says_how_much_its_team_has_beyond_its_quota(self) -> None:
        answer = data("explain", "team-a/borrows", *LIVE)
        assert answer["reason"] == "Admitted"
        assert answer["borrowing"] == ["team-a uses 3 GPUs of ml.g5.8xlarge with a quota of 2: 1 GPU beyond it"]
        assert answer["holders"] == answer["remedies"] == answer["risks"] == []

    def test_a_team_is_explained_as_far_as_it_can_be_seen(self) -> None:
        shown = lines("explain", "--team", "team-a", *LIVE)
        assert "team-a ml.g5.8xlarge 2 3 0 1" in shown
        assert "compute quotas in SageMaker: the planned quotas of the teams" in shown

    def test_no_job_of_another_team_is_in_any_answer(self) -> None:
        for command in (["status"], ["jobs"], ["explain"]):
            result = taskgov(*command, "--team", "team-a", *LIVE)
            assert (result.exit_code, "secret-of-b" in result.output) == (0, False), result.output

    def test_without_a_team_it_says_what_to_name(self) -> None:
        for command in (["status"], ["jobs"], ["explain", "waits"]):
            code, said = refused(*command, *LIVE)
            assert code == 3
            assert "name yours (--team NAME, or TEAM/JOB)" in said

    def test_another_team_is_refused_in_the_words_of_kubernetes(self) -> None:
        for command in (["status", "--team", "team-b"], ["jobs", "--team", "team-b"], ["explain", "team-b/x"]):
            code, said = refused(*command, *LIVE)
            assert code == 3
            assert 'cannot list resource "localqueues"' in said
            assert 'in the namespace "hyperpod-ns-team-b"' in said

    def test_a_name_that_nobody_has_is_answered_with_those_that_are_seen(self) -> None:
        code, said = refused("explain", "team-a/wait", *LIVE)
        assert (code, "did you mean team-a/waits" in said) == (2, True)

    @pytest.mark.parametrize("command", [["plan"], ["audit"], ["what-if", "--lose-nodes", "1xml.g5.8xlarge"]])
    def test_what_needs_the_whole_cluster_is_refused(self, command: list[str]) -> None:
        code, said = refused(*command, *LIVE)
        assert (code, "forbidden" in said or "not authorized" in said) == (3, True), said


class TestMine:
    """`jobs --mine`: who calls is asked of Kubernetes, and matched with what jobs say."""

    def test_only_ones_own_are_listed_and_how_many_name_nobody(self, member: str) -> None:
        found = data("jobs", *LIVE, "--team", "team-a", "--mine")
        assert [each["job"] for each in found["tasks"]] == ["borrows"]
        assert found["mine"] == {"username": member, "tasksThatNameNobody": 1, "kindsNotVisible": []}
        shown = lines("jobs", *LIVE, "--team", "team-a", "--mine")
        assert f"Yours: submitted by {member}" in shown
        assert "1 other task has no submitter (no annotation taskgov/submitted-by)" in shown

    def test_the_whole_name_counts_too_and_that_of_another_role_does_not(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        become(world, monkeypatch, "Others", "TeamMemberPolicy", "taskgov-team-b")
        assert data("jobs", *LIVE, "--team", "team-b", "--mine")["tasks"] == []
        become(world, monkeypatch, SCIENTISTS, "TeamMemberPolicy", "taskgov-team-b")
        assert [each["job"] for each in data("jobs", *LIVE, "--team", "team-b", "--mine")["tasks"]] == ["secret-of-b"]

    @pytest.mark.usefixtures("lead")
    def test_kinds_that_may_not_be_listed_are_named(self) -> None:
        found = data("jobs", *LIVE, "--mine")
        assert found["tasks"] == []
        assert found["mine"]["kindsNotVisible"] == ["PyTorchJob"]
        assert "whose each PyTorchJob is, is not visible with your rights" in lines("jobs", *LIVE, "--mine")

    def test_a_file_cannot_say_who_calls(self, tmp_path: Path) -> None:
        (tmp_path / "s.json").write_text("{}")
        code, said = refused("jobs", "-s", str(tmp_path / "s.json"), "--mine")
        assert (code, "--mine needs a live cluster to identify you" in said) == (2, True)


@pytest.mark.usefixtures("lead")
class TestALead:
    """Somebody who may see all teams."""

    def test_everything_is_shown_and_nothing_is_said_to_be_hidden(self) -> None:
        found = data("status", *LIVE)
        assert {each["usage"]["team"] for each in found["teams"]} == {"team-a", "team-b"}
        assert "notVisible" not in found
        assert {each["team"] for each in data("jobs", *LIVE)["tasks"]} == {"team-a", "team-b"}
        answer = data("explain", "team-a/waits", *LIVE)
        assert answer["notVisible"] == []
        assert answer["holders"] != []
        assert data("explain", "--team", "team-b", *LIVE)["quotas"] != []

    def test_team_chooses_rows(self) -> None:
        found = data("status", *LIVE, "--team", "team-b")
        assert {each["usage"]["team"] for each in found["teams"]} == {"team-b"}
        code, said = refused("status", *LIVE, "--team", "team-c")
        assert (code, "there is no team named team-c; did you mean" in said) == (2, True)


class TestLess:
    """Rights that lack one more thing: the number that rests on it goes, and nothing else."""

    def rights(self, world: World, monkeypatch: pytest.MonkeyPatch, without: str) -> None:
        become(world, monkeypatch, SCIENTISTS, "TeamMemberPolicy", "less")
        kept = [rule for rule in world.rights["taskgov-team-a"] if without not in rule.resources]
        monkeypatch.setitem(world.rights, "less", tuple(kept))

    def test_without_the_own_queue_no_quota_and_no_borrowing(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.rights(world, monkeypatch, "clusterqueues")
        assert "team-a ml.g5.8xlarge ? 3 ? ?" in lines("status", *LIVE, "--team", "team-a")
        assert "quotas: neither your team's nor other teams'" in lines("status", *LIVE, "--team", "team-a")
        tasks = {each["job"]: each["beyondQuota"] for each in data("jobs", *LIVE, "--team", "team-a")["tasks"]}
        assert tasks == {"borrows": None, "waits": {}, "nobodys": {}}
        assert any(
            line.startswith("what the tasks marked ? hold beyond quota")
            for line in lines("jobs", *LIVE, "-t", "team-a")
        )
        assert data("explain", "team-a/borrows", *LIVE)["borrowing"] == []

    def test_without_nodes_nothing_is_said_of_any(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rights(world, monkeypatch, "nodes")
        shown = lines("status", *LIVE, "--team", "team-a")
        assert "nodes: the capacity, and whether there are machines for admitted tasks" in shown
        assert "team-a ml.g5.8xlarge 2 3 0 1" in shown
        assert lines("explain", "team-a/borrows", *LIVE)[0] == "team-a/borrows: Admitted"

    def test_without_flavors_kueue_is_quoted_all_the_same(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rights(world, monkeypatch, "resourceflavors")
        assert lines("explain", "team-a/waits", *LIVE)[0] == "team-a/waits: WaitingForQuota"

    @pytest.mark.parametrize("code", [500, 429])
    def test_what_fails_is_not_taken_for_what_is_refused(
        self, world: World, member: str, monkeypatch: pytest.MonkeyPatch, code: int
    ) -> None:
        assert member
        world.api_server.fail_next(*[code] * 3)
        try:
            exit_code, said = refused("status", *LIVE, "--team", "team-a")
        finally:
            world.api_server._faults.clear()
        assert (exit_code, f": {code} " in said) == (3, True), said
