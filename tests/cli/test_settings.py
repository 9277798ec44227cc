"""What nobody wants to type again: variables and configuration files, which of them counts, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from taskgov_cli import kept_starts, live_reading, settings
from taskgov_cli.main import app
from taskgov_cli.snapshots import read
from tests.cli.test_main import COMMANDS

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "examples" / "snapshot.json"


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return an empty working directory; the person's own file is in the folder `own` beside it."""
    folder = tmp_path / "project" / "deep"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TASKGOV_CONFIG")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own"))
    return folder


def own_file(work: Path, text: str) -> Path:
    return put(work.parents[1] / "own" / "taskgov" / "config.toml", text)


def put(file: Path, text: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def held() -> dict[str, tuple[str | None, str | None]]:
    printed = CliRunner().invoke(app, ["config", "--json"])
    assert printed.exit_code == 0, printed.output
    return {each["key"]: (each["value"], each["origin"]) for each in json.loads(printed.stdout)["settings"]}


def test_nothing_is_set_by_default(work: Path) -> None:
    assert held() == dict.fromkeys(("cluster", "stack", "context", "format", "policy"), (None, None))
    assert "not set" in CliRunner().invoke(app, ["config"]).stdout


def test_the_environment_comes_before_the_project_and_the_project_before_the_person(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own_file(work, 'cluster = "own"\nstack = "own"\ncontext = "own"\nformat = "wide"\n')
    body = 'cluster = "project"\nstack = "project"\npolicy = "policies/ml.yaml"\n'
    project = put(work.parent / "taskgov.toml", body)
    monkeypatch.setenv("TASKGOV_CLUSTER", "variable")
    monkeypatch.setenv("TASKGOV_CONTEXT", "")  # as good as unset
    assert held() == {
        "cluster": ("variable", "TASKGOV_CLUSTER"),
        "stack": ("project", str(project)),
        "context": ("own", str(own)),
        "format": ("wide", str(own)),
        "policy": (str(work.parent / "policies/ml.yaml"), str(project)),  # a path counts from the file's folder
    }


def test_the_nearest_file_counts_and_not_those_above_it(work: Path) -> None:
    put(work.parent / "taskgov.toml", 'cluster = "far"\nstack = "far"\n')
    near = put(work / "taskgov.toml", 'cluster = "near"\n')
    assert (held()["cluster"], held()["stack"]) == (("near", str(near)), (None, None))


def test_a_file_that_is_named_counts_instead_of_the_others(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(work / "taskgov.toml", 'cluster = "near"\n')
    own_file(work, 'stack = "own"\n')
    named = put(work / "other.toml", 'context = "named"\n')
    monkeypatch.setenv("TASKGOV_CONFIG", str(named))
    assert {key: value for key, (value, _) in held().items() if value} == {"context": "named"}
    monkeypatch.setenv("TASKGOV_CONFIG", "nowhere.toml")
    missing = CliRunner().invoke(app, ["config"])
    assert (missing.exit_code, "nowhere.toml: No such file" in missing.stderr) == (2, True)


def test_a_home_that_is_unknown_and_a_folder_that_is_gone_are_no_mistake(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", "relative")  # which the specification tells to ignore
    put(work / "relative/taskgov/config.toml", 'cluster = "no"\n')
    assert held()["cluster"] == (None, None)
    monkeypatch.delenv("XDG_CONFIG_HOME")

    def unknown(_path: Path) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "expanduser", unknown)
    assert held()["cluster"] == (None, None)
    gone = work / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert held()["cluster"] == (None, None)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'clutser = "a"', ["there is no setting 'clutser'", "did you mean cluster?"]),
        (b"[cluster]\nname = 1", ["cluster must be text in quotes", "{'name': 1}"]),
        (b'stack = ""', ["stack must be text", "not ''"]),
        (b'stack = "a\\u001b[31m"', ["stack must be text"]),
        (b"context = 3\nformat = 'cvs'", ["context must be text in quotes", "not 3", "format must be one of"]),
        (b"cluster = ml-cluster", ["is TOML", "line 1"]),
        (b"cluster = '\xff'", ["TOML in UTF-8"]),
        ("cluster = 'a'".encode("utf-16"), ["TOML in UTF-8"]),
        (b"a = " + b"[" * 50_000, ["is TOML"]),
    ],
    ids=["a key", "a table", "nothing", "an escape", "two", "no quotes", "bytes", "UTF-16", "depth"],
)
def test_a_file_that_cannot_be_used_is_one_error_with_file_key_value_and_rule(
    work: Path, body: bytes, words: list[str]
) -> None:
    file = work / "taskgov.toml"
    file.write_bytes(body)
    for command in (["config"], ["status", "-s", str(SAMPLE)], ["history", "ml-cluster"]):
        ended = CliRunner().invoke(app, command)
        assert (ended.exit_code, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"SettingsError: {file}: ")
        assert ended.stderr.count("\n") == 1
        assert [word for word in words if word not in ended.stderr] == []
        assert "\x1b" not in ended.stderr


def test_help_and_commands_without_settings_work_beside_a_broken_file(work: Path) -> None:
    (work / "taskgov.toml").write_bytes(b"\xff")
    for words in (["--help"], ["--version"], ["status", "--help"], ["history", "-h"], ["lease", "add", "--help"]):
        assert CliRunner().invoke(app, words).exit_code == 0
    template = CliRunner().invoke(app, ["lease", "add", "1xml.g5.8xlarge", "-p", "no.yaml"])
    assert "no.yaml" in template.stderr  # it takes no setting, so that the file is not read


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Return what live clusters were read with: cluster, stack and context."""
    calls: list[tuple[Any, ...]] = []

    def read_live(*about: Any, **_: Any) -> Any:
        calls.append(about[:3])
        return read(SAMPLE)

    monkeypatch.setattr(live_reading, "read_live", read_live)
    monkeypatch.setattr(live_reading, "default_stack", lambda *_, **__: None)
    monkeypatch.setattr(kept_starts, "kept_by", lambda *_: None)  # there is no stack to ask
    return calls


@pytest.mark.parametrize("command", ["status", "jobs", "plan", "snapshot"])
def test_what_is_set_is_used_where_nothing_is_typed(
    work: Path, asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    put(work / "taskgov.toml", 'cluster = "ml-cluster"\nstack = "gpu"\ncontext = "there"\n')
    CliRunner().invoke(app, [command])
    monkeypatch.setenv("TASKGOV_CLUSTER", "other")
    CliRunner().invoke(app, [command, "--stack", "typed"])
    assert asked == [("ml-cluster", "gpu", "there"), ("other", "typed", "there")]


def test_a_context_that_is_set_is_not_used_for_another_cluster(work: Path, asked: list[tuple[Any, ...]]) -> None:
    put(work / "taskgov.toml", 'cluster = "ml-cluster"\ncontext = "there"\n')
    for words in (["-c", "ml-cluster"], ["-c", "other"], ["-c", "other", "--context", "typed"]):
        CliRunner().invoke(app, ["status", *words])
    put(work / "taskgov.toml", 'context = "there"\n')
    CliRunner().invoke(app, ["status", "-c", "other"])
    contexts = [context for _, _, context in asked]
    assert contexts == ["there", None, "typed", "there"]


def test_a_file_that_is_typed_is_not_beside_a_cluster_that_is_set(
    work: Path, asked: list[tuple[Any, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TASKGOV_CLUSTER", "ml-cluster")
    assert CliRunner().invoke(app, ["status", "-s", str(SAMPLE)]).exit_code == 0
    assert asked == []
    both = CliRunner().invoke(app, ["status", "-s", str(SAMPLE), "-c", "ml-cluster"])
    assert (both.exit_code, asked) == (2, [])
    assert CliRunner().invoke(app, ["init", "-s", str(SAMPLE), "-o", "a.yaml"]).exit_code == 0


def test_json_that_is_typed_comes_before_a_format_that_is_set(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TASKGOV_FORMAT", "csv")
    assert CliRunner().invoke(app, ["status", "-s", str(SAMPLE)]).stdout.startswith("team,instance type,")
    assert json.loads(CliRunner().invoke(app, ["status", "-s", str(SAMPLE), "--json"]).stdout)["cluster"]
    assert CliRunner().invoke(app, ["status", "-s", str(SAMPLE), "--json", "--format", "csv"]).exit_code == 2
    monkeypatch.setenv("TASKGOV_FORMAT", "cvs")
    wrong = CliRunner().invoke(app, ["status", "-s", str(SAMPLE)], env={"COLUMNS": "200"})
    assert (wrong.exit_code, "TASKGOV_FORMAT" in wrong.stderr, "'cvs'" in wrong.stderr) == (2, True, True)


TAKES_A_CLUSTER = (
    "status, jobs, explain, plan, what-if, when, audit, usage, report, history, snapshot, doctor, reconcile, unlock, "
    "govern, init"
)


def test_a_cluster_that_is_set_is_for_those_who_ask_of_one_and_never_for_the_smoke_test() -> None:
    taking = {
        name.removeprefix("taskgov ")
        for name, command in COMMANDS.items()
        if any(param.envvar == settings.CLUSTER for param in command.params)
    }
    assert taking == set(TAKES_A_CLUSTER.split(", "))


@pytest.mark.parametrize("name", COMMANDS)
def test_an_option_takes_its_setting_wherever_it_is(name: str) -> None:
    held_elsewhere = {"smoke": ["cluster"], "adopt": ["context"], "apply": ["cluster", "context"]}
    held_elsewhere |= {key: ["cluster"] for key in ("approve", "reject", "rollback")}
    params = {param.name: param.envvar for param in COMMANDS[name].params}
    without = [key for key in ("cluster", "stack", "context") if key in params and params[key] is None]
    assert without == held_elsewhere.get(name.removeprefix("taskgov "), [])
    assert params.get("form", settings.FORMAT) == settings.FORMAT


def test_commands_that_a_command_types_do_not_take_what_the_person_has_set(work: Path) -> None:
    put(work / "taskgov.toml", 'cluster = "x"\nformat = "csv"\n')
    typed = CliRunner(env=settings.NONE_HOLDS).invoke(app, ["config", "--json"], env={})
    assert [each["value"] for each in json.loads(typed.stdout)["settings"]] == [None] * 5


def test_the_cluster_of_a_command_that_needs_one_is_asked_for(work: Path) -> None:
    missing = CliRunner().invoke(app, ["history"])
    assert (missing.exit_code, "CLUSTER" in missing.stderr) == (2, True)
