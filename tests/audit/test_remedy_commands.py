"""The commands of remedies: each finding has one, and the command line takes it, whatever names are in it."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.plan import Outcome
from taskgov.audit.remedy_commands import BY_CODE, About, commands_of, longest_waiting, plan_commands
from taskgov.audit.report import Command, PlanRemedy
from taskgov.audit.report_build import audit_report
from taskgov.findings import Finding, Severity, of_audit, of_document, of_plan, of_state
from taskgov.findings.kind import FindingKind
from taskgov.printable import printable
from taskgov.usage.tasks import tasks_of
from taskgov_cli.main import app
from tests.support.lab import Lab

if TYPE_CHECKING:
    import click

KINDS = [kind for room in (of_document, of_plan, of_state, of_audit) for kind in vars(room).values()]
CODES = sorted({kind.code for kind in KINDS if isinstance(kind, FindingKind)})
GROUP = cast("click.Group", typer.main.get_command(app))
NAMES = st.text(min_size=1, max_size=20) | st.sampled_from(["team-a", "-rf", "--yes", "a b", "$(id)", "';id;'", "\n"])


def parsed(line: str, folder: Path) -> dict[str, object]:
    """Return what the command line makes of a line; raises what it would refuse it with. Nothing is run."""
    program, name, *words = shlex.split(line)
    assert program == "taskgov"
    with GROUP.make_context("taskgov", [name, *words], resilient_parsing=True) as context:
        command = GROUP.get_command(context, name)
        assert command is not None, f"{name} is no command"
        for file in (word for word in words if word.endswith(".yaml")):
            (folder / file).touch()
        return dict(command.make_context(name, words, parent=context).params)


def commands(code: str, about: About, remedy: PlanRemedy | None = None) -> tuple[Command, ...]:
    return commands_of(Finding(code, Severity.INFO, about.subject, ""), about, remedy)


ABOUT = About("ml-cluster", "team-a", ("team-a",), {"team-a": "team-a/retrain"})


def test_every_kind_of_finding_has_a_command_and_nothing_else_has_one() -> None:
    assert sorted(BY_CODE) == CODES


@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("stopped_by", [(), ("approval",)])
def test_the_command_line_takes_every_command(
    code: str, stopped_by: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = commands(code, ABOUT, PlanRemedy("plan-1", (1,), stopped_by))
    for command in (*shown, *commands(code, ABOUT)):
        assert command.does.endswith(":")
        parsed(command.line, tmp_path)


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize("outcome", Outcome)
def test_the_command_line_takes_what_the_page_says_of_the_plan(
    outcome: Outcome, is_stopped: bool, tmp_path: Path
) -> None:
    (command,) = plan_commands("ml-cluster", outcome, is_stopped=is_stopped)
    parsed(command.line, tmp_path)


@pytest.mark.parametrize(
    ("stopped_by", "lines"),
    [
        ((), ["taskgov reconcile ml-cluster"]),
        (("max-decrease",), ["taskgov plan --cluster ml-cluster"]),
        (("approval",), ["taskgov plan --cluster ml-cluster", "taskgov reconcile ml-cluster"]),
    ],
)
def test_no_run_is_advised_for_a_plan_that_no_run_would_apply(stopped_by: tuple[str, ...], lines: list[str]) -> None:
    finding = of_audit.QUOTA_DRIFT.about("team-a", {}, team="team-a", because="a share")
    remedy = PlanRemedy("plan-1", (1,), stopped_by)
    assert [command.line for command in commands_of(finding, ABOUT, remedy)] == lines


def test_no_command_does_at_once_what_needs_a_yes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for code in CODES:
        for command in commands(code, ABOUT):
            assert not parsed(command.line, tmp_path).get("yes", False)


@given(NAMES, NAMES, NAMES)
def test_hostile_names_stay_one_word_and_no_option(cluster: str, team: str, task: str) -> None:
    work = About(cluster, f"{team}/{task}", (team,), {team: task})
    for code in (of_audit.STARVED.code, of_audit.EVICTION_LOOP.code, of_plan.SECOND_QUOTA.code, of_plan.MASS_LOSS.code):
        for command in commands(code, work):
            _, name, *words = shlex.split(command.line)
            with GROUP.make_context("taskgov", [name], resilient_parsing=True) as context:
                found = GROUP.get_command(context, name)
                assert found is not None
                params = found.make_context(name, words, parent=context).params
            assert params["cluster"] == printable(cluster)
            assert not params.get("yes", False)
            if name == "explain":
                assert {params["workload"], params["team"]} & {
                    printable(task),
                    printable(f"{team}/{task}"),
                    printable(team),
                }


def test_a_team_that_waits_beside_borrowers_is_led_to_the_task_that_has_waited_longest() -> None:
    lab = Lab().team("team-a", 2).team("team-b", 4).machines(6)
    lab.submit("team-b", "late", pods=9, ago=20).submit("team-b", "later", pods=9, ago=10)
    about = About("ml-cluster", "team-b", ("team-b",), longest_waiting(tasks_of(lab.snapshot())))
    (command,) = commands(of_audit.STARVED.code, about)
    assert command.line == "taskgov explain --cluster ml-cluster team-b/late"


def test_an_audit_gives_every_finding_its_command() -> None:
    lab = Lab().team("team-a", 4).team("team-b", 4).machines(6).submit("team-a", "wide", gpus=9)
    found = audit_report(lab.snapshot()).findings
    assert {finding.code for finding in found} >= {of_audit.REQUEST_NEVER_FITS.code}
    assert all(finding.commands for finding in found)
    (wide,) = (finding for finding in found if of_audit.REQUEST_NEVER_FITS.is_of(finding))
    assert [command.line for command in wide.commands] == [f"taskgov explain --cluster ml-cluster {wide.subject}"]
