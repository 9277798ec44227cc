"""The page of a team: what is its own, and no job or person of another team."""

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.audit.team_page import TeamPage, team_pages
from taskgov.audit.team_page_html import headline, team_page_html
from taskgov.snapshot.model import Snapshot
from taskgov.snapshot.records import QuotaEdit
from taskgov.usage.cluster_usage import cluster_usage
from tests.support.lab import Lab
from tests.support.memory import NOON


def pages(snapshot: Snapshot) -> dict[str, TeamPage]:
    return {page.team: page for page in team_pages(snapshot, cluster_usage(snapshot))}


def two_teams() -> Lab:
    lab = Lab().team("team-a", 2).team("team-b", 4).machines(6)
    lab.submit("team-a", "a-borrows", pods=4).submit("team-a", "a-waits", pods=3, ago=30)
    return lab.submit("team-b", "b-secret", ago=20)


def test_a_team_reads_its_quota_its_tasks_its_loans_and_why_it_waits() -> None:
    page = pages(two_teams().snapshot())["team-a"]
    (gpus,) = (line for line in page.usage if line.leading)
    assert (gpus.guaranteed, gpus.used, gpus.borrowed) == (2, 4, 2)
    assert [(line.task, line.state.value, line.beyond_quota) for line in page.tasks] == [
        ("a-waits", "pending", ""),
        ("a-borrows", "running", "2 GPUs"),
    ]
    assert [(line.lender, line.amount) for line in page.loans] == [("team-b", 2)]
    (wait,) = page.waits
    assert (wait.task, wait.kueue_says.startswith("couldn't assign flavors")) == ("a-waits", True)
    assert (page.key, headline(page)) == ("reports/ml-cluster/teams/team-a.html", "1 task running, 1 task pending.")


def test_a_preempted_task_names_the_team_that_took_its_quota_back_and_no_job() -> None:
    lab = two_teams().submit("team-b", "b-wants-it-back", pods=3, ago=10)
    text = team_page_html(pages(lab.snapshot())["team-a"]).decode()
    assert "Quota that it borrowed was reclaimed" in text
    assert "team-b" in text
    assert "b-wants" not in text
    assert "uid-b" not in text


def test_a_team_without_anything_has_a_page_that_says_so() -> None:
    page = pages(Lab().team("team-a", 2).snapshot())["team-a"]
    text = team_page_html(page).decode()
    left_out = "Tasks, Why tasks wait, Preemptions, Who borrows from whom, Leases."
    assert f"Left out, because there is nothing to show: {left_out}" in text
    assert "No tasks." in text


def test_a_cluster_without_teams_has_no_pages() -> None:
    assert pages(Lab().machines(2).snapshot()) == {}


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["team-a", "team-b", "team-c"]),
            st.integers(1, 5),
            st.sampled_from(["training", "inference"]),
        ),
        max_size=8,
    )
)
def test_no_page_has_a_job_or_a_person_of_another_team(work: list[tuple[str, int, str]]) -> None:
    lab = Lab().team("team-a", 2).team("team-b", 4).team("team-c", 0).machines(5)
    for number, (team, pods, priority) in enumerate(work):
        lab.submit(team, f"job-{number}-of-{team}", pods=pods, priority=priority, ago=60 - number)
    snapshot = lab.snapshot()
    edits = tuple(
        QuotaEdit(
            quota.compute_quota_id,
            f"arn:aws:iam::111122223333:user/editor-{quota.name}",
            NOON - timedelta(hours=1),
            "UpdateComputeQuota",
        )
        for quota in snapshot.quotas
    )
    by_team = pages(replace(snapshot, edits=edits))
    assert by_team.keys() == {"team-a", "team-b", "team-c"}
    for team, page in by_team.items():
        text = team_page_html(page).decode()
        assert "editor-" not in text
        for number, (of, _, _) in enumerate(work):
            if of != team:
                assert f"job-{number}-of-{of}" not in text
                assert f"uid-job-{number}" not in text


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "\x1b[31mred"])
def test_what_others_wrote_is_shown_and_not_run(name: str) -> None:
    lab = Lab().team("team-a", 2).machines(2).submit("team-a", name)
    text = team_page_html(pages(lab.snapshot())["team-a"]).decode()
    assert "<script>alert" not in text
    assert "\x1b" not in text
