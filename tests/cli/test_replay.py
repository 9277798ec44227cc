"""`taskgov replay`: traces read, played by the planner and the scheduling model, and held against partitions."""

import gzip
import json
import re
from datetime import timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

from taskgov.quantities import GPU
from taskgov.snapshot.codec import snapshot_to_json
from taskgov.work.attempt import Attempt, Held
from taskgov.work.day import Day, to_bytes
from taskgov_cli.main import app
from taskgov_cli.replay_counts import NO_LIMIT, Sharing, judge_counts, read_counts
from taskgov_cli.replay_outcome import Outcome
from taskgov_cli.replay_run import default_policy, failing, partitioned, play
from taskgov_cli.replay_traces import Job, Trace, read_trace
from tests.support.lab import Lab
from tests.support.memory import CLUSTER_ARN, NOON

HOUR = 3600.0
PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 08:00:00,3600.0,2,7200.0,team-b
2017-10-09 07:00:00,3600.0,1,3600.0,team-a
2017-10-09 07:30:00,0.0,1,0.0,team-a
"""
OPENB = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
one,12000,16384,1,500,,LS,Running,100,700,200
two,12000,16384,0,0,,BE,Running,0,700,0
three,12000,16384,8,1000,,BE,Pending,400,900,
"""
COUNTS = "time,pending_gpujob_num,total_gpu_num,running_gpu_num,pending_gpu_num,idle_gpu_num\n"


def jobs(*some: tuple[str, float, float, int]) -> Trace:
    return Trace("made up", tuple(Job(team, at * HOUR, run * HOUR, gpus) for team, at, run, gpus in some), 0)


def totals(outcome: Outcome) -> dict[str, float]:
    fields = ("waiting_gpu_hours", "used_gpu_hours", "borrowed_gpu_hours", "preemptions", "lost_gpu_hours")
    return {name: sum(getattr(team, name) for team in outcome.teams) for name in fields}


def played(trace: Trace, gpus: int, borrow_limit: int = 100) -> tuple[Outcome, Outcome]:
    policy = default_policy(trace, borrow_limit)
    capacity = [(0.0, gpus)]
    return play("static", trace, partitioned(policy), capacity), play("lend", trace, policy, capacity)


@pytest.mark.parametrize(
    ("text", "expected", "skipped"),
    [
        (PHILLY, (Job("team-a", 0, 3600, 1), Job("team-b", 3600, 3600, 2)), 1),
        (OPENB, (Job("LS", 0, 500, 1), Job("BE", 300, 500, 8)), 1),
    ],
    ids=["Philly", "openb"],
)
def test_public_formats_become_jobs_by_arrival(
    text: str, expected: tuple[Job, ...], skipped: int, tmp_path: Path
) -> None:
    (tmp_path / "trace.csv").write_text(text)
    trace = read_trace(tmp_path / "trace.csv")
    assert (trace.jobs, trace.skipped) == (expected, skipped)


def test_a_series_of_snapshots_is_a_trace(tmp_path: Path) -> None:
    lab = Lab().team("team-a", 4).machines(4).submit("team-a", "first", pods=2).submit("team-a", "second", ago=30)
    (tmp_path / "1.json").write_bytes(snapshot_to_json(lab.snapshot()))
    lab.world.finish("hyperpod-ns-team-a/pytorchjob-first-a1b2c", NOON + timedelta(minutes=10))
    (tmp_path / "2.json").write_bytes(snapshot_to_json(lab.snapshot()))
    trace = read_trace(tmp_path)
    assert trace.jobs == (Job("team-a", 0, 70 * 60, 2), Job("team-a", 30 * 60, 30 * 60, 1))


def an_attempt(uid: str, number: int, hours: float, gpus: int = 2, instance_type: str = "ml.p5.48xlarge") -> Attempt:
    ended = NOON + timedelta(hours=number + hours)
    held = (Held(instance_type, GPU, gpus),)
    return Attempt(
        uid,
        number,
        "team-a",
        None,
        "train",
        "Job",
        "high",
        7,
        held,
        None,
        NOON,
        NOON,
        ended - timedelta(hours=hours),
        ended,
    )


def test_a_record_of_work_is_a_trace_in_which_a_workload_is_one_job(tmp_path: Path) -> None:
    day = Day(attempts=(an_attempt("u1", 1, 1), an_attempt("u1", 2, 3), an_attempt("u2", 1, 2, 1, "ml.g5.8xlarge")))
    (tmp_path / "2026-11-20.jsonl.gz").write_bytes(to_bytes(day, NOON.date()))
    assert read_trace(tmp_path).jobs == (Job("team-a", 0, 7200, 1, 7), Job("team-a", 0, 10800, 2, 7))
    assert read_trace(tmp_path, "ml.p5.48xlarge").jobs == (Job("team-a", 0, 10800, 2, 7),)
    (tmp_path / "2026-11-21.jsonl.gz").write_bytes(b"no day")
    with pytest.raises(ValueError, match=r"2026-11-21\.jsonl\.gz: it is not a day of the record of work"):
        read_trace(tmp_path)


def test_what_waits_for_its_own_partition_borrows_what_others_leave() -> None:
    trace = jobs(*[("team-a", 0, 1, 1)] * 4, ("team-b", 3, 4, 1))  # GPU-hours 4 and 4: two GPUs each
    static, lend = played(trace, gpus=4)
    assert totals(static)["waiting_gpu_hours"] == pytest.approx(2, abs=0.05)
    assert totals(static)["borrowed_gpu_hours"] == 0
    assert totals(lend)["waiting_gpu_hours"] == 0
    assert totals(lend)["borrowed_gpu_hours"] == pytest.approx(2)


def test_a_preempted_job_begins_anew_and_what_it_did_is_lost() -> None:
    trace = jobs(("team-a", 0, 4, 4), ("team-b", 1, 8, 2))  # GPU-hours 16 and 16
    _, lend = played(trace, gpus=4)
    assert totals(lend)["preemptions"] == 1
    assert totals(lend)["lost_gpu_hours"] == pytest.approx(4)
    assert totals(lend)["used_gpu_hours"] == pytest.approx(16 + 16 + 4)
    assert {team.team: team.preemptions for team in lend.teams} == {"team-a": 1, "team-b": 0}


def test_what_is_larger_than_quota_and_limit_never_starts() -> None:
    trace = jobs(("team-a", 0, 1, 4), ("team-b", 0, 4, 1))
    static, lend = played(trace, gpus=4, borrow_limit=50)
    assert [team.never_started for team in static.teams] == [1, 0]
    assert [team.never_started for team in lend.teams] == [1, 0]


def test_quotas_that_follow_the_machines_admit_nothing_that_has_none() -> None:
    trace = jobs(("team-a", 2, 2, 2), ("team-b", 2, 2, 2), ("team-a", 9, 1, 2), ("team-b", 9, 1, 2))
    policy, capacity = default_policy(trace, 100), [(0.0, 4), (1 * HOUR, 2), (5 * HOUR, 4)]
    fixed = play("fixed", trace, policy, capacity, follow=False)
    follows = play("follows", trace, policy, capacity)
    assert fixed.beyond_gpu_hours == pytest.approx(4)
    assert follows.beyond_gpu_hours == 0
    assert (fixed.plans, follows.plans) == (1, 3)


def test_failing_machines_are_the_same_each_time_and_never_more_than_there_are() -> None:
    first, second = (failing(80, 30 * 86400.0, mtbf_days=10, repair_hours=12) for _ in range(2))
    assert first == second
    assert len(first) > 10
    assert all(0 <= gpus <= 80 and gpus % 8 == 0 for _, gpus in first)


def test_counts_by_minute_bound_what_lending_could_have_served(tmp_path: Path) -> None:
    (tmp_path / "vca.csv").write_text(COUNTS + "t0,2,8,8,6,0\nt1,0,8,4,0,4\n")
    (tmp_path / "vcb.csv").write_text(COUNTS + "t0,0,8,3,0,5\nt1,0,8,8,0,0\n")
    outcome = judge_counts("counts", read_counts(tmp_path), (25, NO_LIMIT))
    assert (outcome.teams, outcome.minutes, outcome.gpus, outcome.minutes_waiting_beside_idle) == (2, 2, 16, 1)
    limited, free = outcome.limits
    assert [60 * each.served_gpu_hours for each in (limited, free)] == pytest.approx([2, 5])
    assert [60 * each.served_whole_jobs_gpu_hours for each in (limited, free)] == pytest.approx([0, 3])


def test_a_policy_says_who_lends_and_who_may_borrow_how_much(tmp_path: Path) -> None:
    (tmp_path / "vca.csv").write_text(COUNTS + "t0,2,8,8,6,0\n")
    (tmp_path / "vcb.csv").write_text(COUNTS + "t0,0,8,3,0,5\n")
    (tmp_path / "vcc.csv").write_text(COUNTS + "t0,0,8,7,0,1\n")
    minutes = read_counts(tmp_path)
    rules = {"vca": Sharing(50), "vcb": Sharing(50, lends=False), "vcc": Sharing(0)}
    outcome = judge_counts("counts", minutes, (50,), rules)
    assert outcome.by_policy is not None
    assert [60 * each.served_gpu_hours for each in (*outcome.limits, outcome.by_policy)] == pytest.approx([4, 1])


def test_counts_are_given_by_team_and_by_hour(tmp_path: Path) -> None:
    rows = "2020-05-01 00:00:00,2,8,8,6,0\n2020-05-01 00:01:00,0,8,4,0,4\n2020-05-01 01:00:00,0,8,2,0,6\n"
    (tmp_path / "vca.csv").write_text(COUNTS + rows)
    outcome = judge_counts("counts", read_counts(tmp_path), (50,))
    (team,) = outcome.by_team
    assert (team.quota, 60 * team.running, 60 * team.idle, 60 * team.waiting) == (8, 14, 10, 6)
    assert [(hour.at, hour.running, hour.idle, hour.waiting) for hour in outcome.hours] == [
        ("2020-05-01 00", 6, 2, 3),
        ("2020-05-01 01", 2, 6, 0),
    ]


def test_a_policy_for_counts_names_their_teams(tmp_path: Path) -> None:
    (tmp_path / "vca.csv").write_text(COUNTS + "t0,2,8,8,6,0\n")
    (tmp_path / "policy.yaml").write_text(
        json.dumps(
            {
                "apiVersion": "taskgov/v1",
                "cluster": {"name": "c", "arn": CLUSTER_ARN},
                "teams": [{"name": "vca", "quota": {"ResourceSharingConfig": {"Strategy": "DontLend"}}}],
            }
        )
    )
    result = CliRunner().invoke(app, ["replay", str(tmp_path), "--policy", str(tmp_path / "policy.yaml")])
    assert (result.exit_code, "as the policy says" in result.output) == (0, True), result.output


def test_what_counts_cannot_answer_is_refused(tmp_path: Path) -> None:
    (tmp_path / "vca.csv").write_text(COUNTS + "t0,2,8,8,6,0\n")
    result = CliRunner().invoke(app, ["replay", str(tmp_path), "--failures", "1d,2h"])
    assert (result.exit_code, "mean nothing there" in result.output) == (2, True), result.output


def test_samples_add_up_to_what_the_teams_had() -> None:
    trace = jobs(
        *[("team-a", 0, 4, 2)] * 2, ("team-b", 1, 8, 2), ("team-b", 2, 1, 3), ("team-a", 12, 1, 1), ("team-a", 20, 1, 1)
    )
    for outcome in played(trace, gpus=4):
        width = trace.span / len(outcome.samples) / HOUR
        sums = totals(outcome)
        held = sum(sample.used for sample in outcome.samples) * width
        assert held == pytest.approx(sums["used_gpu_hours"] - 1)  # the last job comes when the samples end
        assert sum(sample.waiting for sample in outcome.samples) * width == pytest.approx(sums["waiting_gpu_hours"])
        assert sum(sample.borrowed for sample in outcome.samples) * width == pytest.approx(
            sums["borrowed_gpu_hours"], abs=0.01
        )
        assert [sample.machines for sample in outcome.samples] == pytest.approx([4] * len(outcome.samples))


@pytest.mark.plots
@pytest.mark.parametrize(("form", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("pdf", b"%PDF")])
def test_a_replay_is_drawn_the_same_each_time(form: str, begins: bytes, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(PHILLY)
    pictures = []
    for number in range(2):
        file = tmp_path / f"{number}.{form}"
        result = CliRunner().invoke(app, ["replay", str(tmp_path / "trace.csv"), "--gpus", "4", "--plot", str(file)])
        assert result.exit_code == 0, result.output
        pictures.append(file.read_bytes())
    assert pictures[0].startswith(begins)
    assert pictures[0] == pictures[1]


@pytest.mark.plots
def test_the_picture_names_what_it_shows(tmp_path: Path) -> None:
    from taskgov_cli.replay_plot import plot_jobs

    trace = jobs(("team-a", 0, 4, 4), ("team-b", 1, 8, 2), ("team-a", 12, 1, 1))
    figure = tmp_path / "plot.svg"
    plot_jobs("made up", played(trace, gpus=4), figure)
    comments = re.findall(r"<!-- (.*?) -->", figure.read_text())
    for words in ("made up", "static", "lend", "borrowed, lend", "team-a", "Mean wait by team", "machines"):
        assert words in comments


@pytest.mark.parametrize("body", [b"no gzip", gzip.compress(COUNTS.encode())[:-9]], ids=["no gzip", "cut off"])
def test_counts_that_are_no_gzip_or_cut_off_are_refused_with_their_file(tmp_path: Path, body: bytes) -> None:
    (tmp_path / "vc1.csv.gz").write_bytes(body)
    with pytest.raises(ValueError, match=r"vc1\.csv\.gz is not gzip, or is cut off"):
        read_counts(tmp_path)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "columns are missing: idle_gpu_num, pending_gpu_num, pending_gpujob_num, running_gpu_num, time, total"),
        (
            "time,total_gpu_num,running_gpu_num,pending_gpu_num,pending_gpujob_num\n",
            "columns are missing: idle_gpu_num$",
        ),
        (COUNTS, "it has no rows"),
    ],
    ids=["empty", "a column is missing", "no rows"],
)
def test_counts_without_what_they_need_are_refused_with_their_file(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "vc1.csv").write_text(text)
    with pytest.raises(ValueError, match=rf"vc1\.csv: {why}"):
        read_counts(tmp_path)


@pytest.mark.plots
def test_counts_are_drawn_too(tmp_path: Path) -> None:
    (tmp_path / "vca.csv").write_text(COUNTS + "t0,1,8,8,6,0\n")
    (tmp_path / "vcb.csv").write_text(COUNTS + "t0,0,8,3,0,5\n")
    figure = tmp_path / "plot.svg"
    result = CliRunner().invoke(app, ["replay", str(tmp_path), "--plot", str(figure)])
    assert result.exit_code == 0, result.output
    comments = re.findall(r"<!-- (.*?) -->", figure.read_text())
    assert {"vca", "vcb", "25 %", "waiting"} <= set(comments)


@pytest.mark.plots
def test_an_ending_that_cannot_be_drawn_is_refused_before_anything_is_played(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text("not even a trace")
    result = CliRunner().invoke(app, ["replay", str(tmp_path / "trace.csv"), "--plot", "plot.xlsx"])
    assert (result.exit_code, ".svg, .png, .pdf" in result.output) == (2, True), result.output


def test_the_command_shows_both_sides_and_gives_them_as_json(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(PHILLY)
    arguments = ["replay", str(tmp_path / "trace.csv"), "--gpus", "4"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    for text in ("static partitions", "lend and borrow", "utilisation", "team-b"):
        assert text in result.output
    data = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).output)
    assert [each["name"] for each in data] == ["static partitions", "lend and borrow"]


def test_failures_compare_fixed_with_following_quotas(tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(PHILLY)
    arguments = ["replay", str(tmp_path / "trace.csv"), "--gpus", "16", "--failures", "1d,2h", "--json"]
    data = json.loads(CliRunner().invoke(app, arguments).output)
    assert [each["name"] for each in data] == ["quotas fixed", "quotas follow the machines"]


def test_counts_are_recognised_by_their_folder(tmp_path: Path) -> None:
    (tmp_path / "vca.csv").write_text(COUNTS + "t0,1,8,8,6,0\n")
    (tmp_path / "vcb.csv").write_text(COUNTS + "t0,0,8,3,0,5\n")
    result = CliRunner().invoke(app, ["replay", str(tmp_path)])
    assert (result.exit_code, "2 teams, 16 GPUs" in result.output) == (0, True), result.output


def test_a_trace_in_another_encoding_is_refused_with_its_name(tmp_path: Path) -> None:
    trace = tmp_path / "trace.csv"
    trace.write_bytes(PHILLY.encode("utf-16"))
    result = CliRunner().invoke(app, ["replay", str(trace)], env={"COLUMNS": "200"})
    assert result.exit_code == 2
    assert "trace.csv is not CSV in UTF-8" in result.output


@pytest.mark.parametrize(
    ("text", "policy", "said"),
    [
        ("a,b\n1,2\n", None, "none of the known formats"),
        ("a" * 200_000, None, "is not CSV: field larger than field limit"),
        (
            PHILLY.splitlines()[0] + "\n2017-10-01 00:00:00\n",
            None,
            "line 2: cluster is missing: each row has a value for each column",
        ),
        (PHILLY.splitlines()[0] + "\n", None, "has no GPU jobs"),
        (PHILLY, "apiVersion: taskgov/v2", "not a valid policy document"),
        (
            PHILLY,
            f"{{apiVersion: taskgov/v1, cluster: {{name: c, arn: '{CLUSTER_ARN}'}}}}",
            "has no team team-a, team-b of the trace",
        ),
    ],
    ids=[
        "another format",
        "a field too long",
        "a row too short",
        "nothing in it",
        "a broken document",
        "a document of other teams",
    ],
)
def test_what_cannot_be_replayed_says_why(text: str, policy: str | None, said: str, tmp_path: Path) -> None:
    (tmp_path / "trace.csv").write_text(text)
    (tmp_path / "policy.yaml").write_text(policy or "")
    options = ["--policy", str(tmp_path / "policy.yaml")] if policy else []
    result = CliRunner().invoke(app, ["replay", str(tmp_path / "trace.csv"), *options])
    assert (result.exit_code, said in " ".join(result.output.replace("│", " ").split())) == (2, True), result.output
