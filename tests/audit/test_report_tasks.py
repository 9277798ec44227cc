"""The tasks of the report: the same as `taskgov jobs` lists, cut where a page would be too long."""

from dataclasses import replace

from taskgov.audit.report_build import audit_report
from taskgov.audit.report_html import report_html
from taskgov.audit.report_tasks import task_lines
from taskgov.snapshot.model import Snapshot
from taskgov.usage.tasks import TaskState, tasks_of
from tests.support.lab import Lab


def a_busy_cluster() -> Snapshot:
    """Three tasks of team-a run, and two of team-b wait: an old one and a new one."""
    lab = Lab().team("team-a", 3).team("team-b", 1, borrow=0).machines(4)
    for name, ago in (("r1", 50), ("r2", 40), ("r3", 30)):
        lab.submit("team-a", name, ago=ago)
    return lab.submit("team-b", "w-old", gpus=2, ago=60).submit("team-b", "w-new", gpus=3, ago=5).snapshot()


def test_the_report_lists_the_tasks_as_jobs_does() -> None:
    snapshot = a_busy_cluster()
    report = audit_report(snapshot)
    tasks = [(task.team, task.job, task.state, task.since) for task in tasks_of(snapshot)]
    assert [(line.team, line.task, line.state, line.since) for line in report.tasks] == tasks
    assert {line.state for line in report.tasks} == {TaskState.RUNNING, TaskState.PENDING}
    assert report.tasks_left_out == 0
    section = report_html(report).decode().partition('id="tasks"')[2]
    assert "left out" not in section
    assert all(line.task in section for line in report.tasks)
    assert "training-priority (50)" in section


def test_what_has_finished_is_not_listed() -> None:
    snapshot = a_busy_cluster()
    done = {"type": "Finished", "status": "True", "lastTransitionTime": "2026-11-20T10:00:00Z"}
    first, *others = snapshot.kueue.workloads
    status = {**first["status"], "conditions": [*first["status"]["conditions"], done]}
    kueue = replace(snapshot.kueue, workloads=({**first, "status": status}, *others))
    assert len(task_lines(tasks_of(replace(snapshot, kueue=kueue)))[0]) == len(snapshot.kueue.workloads) - 1


def test_a_long_list_is_cut_and_what_waits_is_kept() -> None:
    snapshot = a_busy_cluster()
    lines, left_out = task_lines(tasks_of(snapshot), most=3)
    assert ([line.task for line in lines], left_out) == (["w-new", "r3", "w-old"], 2)
    report = replace(audit_report(snapshot), tasks=lines, tasks_left_out=1_580)
    assert "1,580 more are left out" in report_html(report).decode()
