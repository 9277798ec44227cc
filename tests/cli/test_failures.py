"""Ordinary mistakes end a command with a sentence and an exit code, never with a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import IO, TYPE_CHECKING

import pytest
import typer
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError
from typer.testing import CliRunner

from taskgov.errors import UpstreamError
from taskgov_cli.failures import SafeGroup
from taskgov_cli.main import app as taskgov

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.long

DENIED = ClientError({"Error": {"Code": "AccessDenied", "Message": "not you"}}, "DescribeCluster")


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (FileNotFoundError(2, "No such file or directory", "/nope/a.json"), 2, "/nope/a.json: No such file"),
        (PermissionError(13, "Permission denied", b"a\x1b[31m"), 2, "Permission denied"),
        (NoCredentialsError(), 3, "log in first"),
        (EndpointConnectionError(endpoint_url="https://eks.invalid"), 3, "https://eks.invalid"),
        (DENIED, 3, "not you"),
        (UpstreamError("eks: gone"), 3, "eks: gone"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_failure_that_no_command_handles_is_a_sentence(error: Exception, code: int, words: str) -> None:
    app = typer.Typer(cls=SafeGroup, pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise error

    @app.command()
    def nothing() -> None: ...

    result = CliRunner().invoke(app, ["fail"])
    assert result.exit_code == code
    assert words in result.stderr
    assert "\x1b" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_what_failed_for_lack_of_credentials_says_how_to_get_them() -> None:
    app = typer.Typer(cls=SafeGroup, pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise UpstreamError("describe cluster ml: Unable to locate credentials") from NoCredentialsError()

    @app.command()
    def nothing() -> None: ...

    result = CliRunner().invoke(app, ["fail"])
    assert result.exit_code == 3
    assert "Unable to locate credentials: log in first, for example with `aws sso login`" in result.stderr


def test_a_defect_in_taskgov_keeps_its_traceback() -> None:
    app = typer.Typer(cls=SafeGroup, pretty_exceptions_enable=False)

    @app.command()
    def fail() -> None:
        raise RuntimeError("a defect")

    @app.command()
    def nothing() -> None: ...

    assert isinstance(CliRunner().invoke(app, ["fail"]).exception, RuntimeError)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "set AWS_DEFAULT_REGION"),
        ({"AWS_DEFAULT_REGION": ""}, "set AWS_DEFAULT_REGION"),
        ({"AWS_DEFAULT_REGION": "bad region"}, "bad region"),
        ({"AWS_PROFILE": "nope"}, "(nope)"),
        ({"AWS_DEFAULT_REGION": "us-east-1", "AWS_ENDPOINT_URL": "no url"}, "no url: correct AWS_ENDPOINT_URL"),
    ],
    ids=["no Region", "an empty Region", "a Region that cannot be", "an unknown profile", "an endpoint that is none"],
)
def test_what_the_machine_lacks_is_named(settings: dict[str, str], words: str, tmp_path: Path) -> None:
    ended = run(["status", "--cluster", "ml-cluster"], tmp_path, settings)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_file_of_aws_settings_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("no section\n")
    ended = run(["status", "--cluster", "ml-cluster"], tmp_path, {"AWS_DEFAULT_REGION": "us-east-1"})
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"{tmp_path / 'config'}: correct the file, or AWS_CONFIG_FILE" in ended.stderr


def test_a_live_cluster_without_credentials_says_how_to_get_them(tmp_path: Path) -> None:
    nothing = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true"}
    ended = run(
        ["status", "--cluster", "ml"], tmp_path, nothing | {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}
    )
    assert (ended.returncode, ended.stdout) == (3, "")
    assert "Unable to locate credentials: log in first, for example with `aws sso login`" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["lease", "list", "--at", "friday"], '--at\': "friday" must be a time such as 2026-11-20T09:00Z'),
        (["local", "--port", "99999"], '--port\': "99999" must be less than or equal to 65535'),
        (["local", "--kubernetes-port", "x"], '--kubernetes-port\': "x" must be a whole number'),
        (["replay", ".", "--days", "x"], '--days\': "x" must be a number'),
        (["stop", "maybe"], "'position': 'maybe' is not one of 'on', 'off'"),
        (["replay"], "Missing argument 'TRACE'"),
    ],
)
def test_a_value_that_is_refused_is_named_with_its_rule(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(taskgov, arguments, env={"COLUMNS": "400"})
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110 -- at collection
def test_an_answer_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    document = tmp_path / "document.yaml"
    document.write_text("a: 1\n")
    with open("/dev/full", "w") as full:  # noqa: PTH123 -- a device
        ended = run(["validate", str(document)], tmp_path, {}, stdout=full)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == ["OSError: cannot write the answer: No space left on device"]


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")  # noqa: PTH110 -- at collection
@pytest.mark.parametrize("words", [["--help"], ["--version"], []], ids=str)
def test_help_that_cannot_be_written_is_said(words: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:  # noqa: PTH123 -- a device
        ended = run(words, tmp_path, {}, stdout=full)
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == ["Error: cannot write the answer: No space left on device"]


def run(
    arguments: list[str], home: Path, settings: dict[str, str], stdout: IO[str] | int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run the command line as a shell would, without this machine's AWS configuration."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    files = {"AWS_CONFIG_FILE": str(home / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(home / "credentials")}
    keys = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    return subprocess.run(  # noqa: S603 -- our own module
        [sys.executable, "-m", "taskgov_cli", *arguments],
        env=kept | files | keys | settings,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=120,
    )
