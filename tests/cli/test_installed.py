"""The wheel in a fresh environment, outside a checkout: what is missing is named, and then everything runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hatchling.builders.wheel import WheelBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.slow  # it asks the package index for what the wheel needs

ROOT = Path(__file__).parents[2]
NOT_REACHED = ("No matching distribution", "Temporary failure in name resolution", "Max retries exceeded")
QUICK = ("--quiet", "--no-compile")
"""Most modules are never imported here."""


@dataclass(frozen=True)
class Installation:
    """An environment with the package, and an empty folder in which its commands are typed."""

    programs: Path
    folder: Path
    environment: dict[str, str]

    def types(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Run a program of this environment, or a command of the package."""
        return subprocess.run(  # noqa: S603 - our own commands
            words, cwd=self.folder, env=self.environment | variables, capture_output=True, text=True, check=False
        )

    def answers(self, *words: str, **variables: str) -> str:
        """Return what `taskgov` prints, which has to go well."""
        ended = self.types(self.taskgov, *words, **variables)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    @property
    def taskgov(self) -> str:
        """The command."""
        return str(self.programs / "taskgov")


def install(installation: Installation, *words: str) -> None:
    """Run an installer; versions are those of requirements/dev.txt."""
    ended = installation.types(*words)
    if any(text in ended.stderr for text in NOT_REACHED):
        pytest.skip("the package index cannot be reached")
    assert ended.returncode == 0, ended.stderr


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Return an environment with the wheel and what it requires, without an extra."""
    home = tmp_path_factory.mktemp("installed")
    (wheel,) = WheelBuilder(str(ROOT)).build(directory=str(home / "wheel"), versions=["standard"])
    constraints = home / "constraints.txt"
    lock = (ROOT / "requirements" / "dev.txt").read_text()
    constraints.write_text("\n".join(re.findall(r"^[\w.-]+==[^\\\n]*", re.sub(r"\[[\w,]+\]", "", lock), re.MULTILINE)))
    given = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "http", "SSL"))}
    own = {"HOME": str(home), "PATH": "/usr/bin:/bin", "COLUMNS": "200", "PIP_CONSTRAINT": str(constraints)}
    made = Installation(home / "venv" / "bin", home / "empty", given | own)
    made.folder.mkdir()
    subprocess.run([sys.executable, "-m", "venv", home / "venv"], check=True)  # noqa: S603 - the tests' own Python
    install(made, str(made.programs / "python"), "-m", "pip", "install", *QUICK, wheel)
    return made


@pytest.fixture(scope="module")
def refused(plain: Installation) -> subprocess.CompletedProcess[str]:
    """Return how `taskgov demo` ends without the extra."""
    return plain.types(plain.taskgov, "demo")


@pytest.fixture(scope="module")
def installed(plain: Installation, refused: subprocess.CompletedProcess[str]) -> Installation:
    """Return the environment after the command was typed that the refusal gives."""
    install(plain, *shlex.split(refused.stderr.partition("extra `embedded`: ")[2]), *QUICK)
    return plain


def test_without_the_extra_the_demo_ends_with_the_command_that_installs_it(
    refused: subprocess.CompletedProcess[str],
) -> None:
    assert refused.returncode == 2
    assert re.search(r"this command needs \w+, of the extra `embedded`: \S+/venv/bin/python -m pip ", refused.stderr)
    assert len(refused.stderr.splitlines()) == 1


def test_it_names_its_version(installed: Installation) -> None:
    assert re.match(r"taskgov \d+\.\d+\.\d+ ", installed.answers("--version"))


def test_the_demo_plays_and_its_next_commands_answer(installed: Installation) -> None:
    played = installed.answers("demo", PATH=f"{installed.programs}:/usr/bin:/bin")
    assert re.search(r"^demo: \d+ checks passed, 0 failed$", played, re.MULTILINE)
    commands = re.findall(r"^  taskgov (.+?)  # ", played, re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["status", "explain", "what-if"]
    for command in commands:
        assert installed.answers(*shlex.split(command))


def test_walkthroughs_and_the_first_day_play(installed: Installation) -> None:
    assert installed.answers("demo", "08-lend", "first-day").endswith(" checks passed, 0 failed\n")


def test_the_smoke_test_builds_from_what_is_installed(installed: Installation) -> None:
    assert "smoke" in installed.answers("smoke", "--embedded")


@pytest.fixture(scope="module")
def account(installed: Installation) -> Iterator[dict[str, Any]]:
    """Serve an account with `taskgov local`; stop it with Ctrl-C."""
    command = [installed.taskgov, "local", "--json", "--address", "127.0.0.1", "--port", "0", "--kubernetes-port", "0"]
    with subprocess.Popen(  # noqa: S603 - our own command
        command, cwd=installed.folder, env=installed.environment, stdout=subprocess.PIPE, text=True
    ) as serving:
        assert serving.stdout is not None
        yield json.loads(serving.stdout.readline())
        serving.send_signal(signal.SIGINT)
    assert serving.returncode == 0


def test_an_account_is_served_and_a_cluster_in_it_is_taken_over(
    installed: Installation, account: dict[str, Any]
) -> None:
    person, *_ = account["people"].values()
    there = {
        "AWS_ENDPOINT_URL": account["awsEndpoint"],
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": person["accessKeyId"],
        "AWS_SECRET_ACCESS_KEY": person["secretAccessKey"],
    }
    assert "Wrote ml-cluster.yaml" in installed.answers("init", "ml-cluster", **there)
    assert installed.answers("schema") == (installed.folder / "policy.schema.json").read_text()
    assert "ml-cluster.yaml is a valid policy document" in installed.answers("validate", "ml-cluster.yaml")
    installed.answers("snapshot", "ml-cluster", "-o", "ml-cluster.json", **there)
    assert "nothing-to-do" in installed.answers("plan", "-s", "ml-cluster.json", "-p", "ml-cluster.yaml")
    audited = installed.answers("audit", "-s", "ml-cluster.json", "-p", "ml-cluster.yaml", "-o", "reports")
    assert "Nothing needs attention" in audited
    assert len(list((installed.folder / "reports").glob("*.html"))) == 1
