"""`docs/walkthroughs.md`, typed: each command of each document, with the AWS CLI and kubectl, and what it prints.

Typed twice: with kubectl, where it is installed, and with a stand-in that sends the same requests through the
Kubernetes client. Skipped where the AWS CLI is not installed. TASKGOV_UPDATE_GOLDEN=1 writes what kubectl prints into
the page.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from taskgov_embedded.server.account import LocalAccount, workers_of
from taskgov_embedded.server.http_server import StackServer
from tests.support.eks_token import token_for

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "walkthroughs.md"
UPDATES = os.environ.get("TASKGOV_UPDATE_GOLDEN") == "1"
STAND_IN = "stand-in"
LETTERS = "bcdfghjklmnpqrstvwxz2456789"
VARYING = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UID"),
    (r"hyperpod-i-[0-9a-f]{17}", "hyperpod-i-ID"),
    (rf"-[0-9a-f]{{10}}-[{LETTERS}]{{5}}", "-REVISION-LETTERS"),
    (rf"tune-[{LETTERS}]{{5}}", "tune-LETTERS"),
    (r"-[0-9a-f]{5}(?=\s|$)", "-HASH"),
    (r'"[a-z0-9]{12}"', '"ID"'),
    (r"[a-z-]+/[a-z0-9]{12}\"", 'ID"'),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME"),
    (r"Resource Version:\s+\d+", "Resource Version: N"),
    (r"\b\d+[smh](\d+s)?\b", "AGE"),
    (r" from \S+ namespace$", ""),  # kubectl 1.36 adds it, 1.32 does not
    (r"\s+", " "),
)
"""What differs from one time to the next."""


@dataclass(frozen=True, slots=True)
class Step:
    """A command of the page and what it prints there."""

    command: str
    printed: str


def documents() -> dict[str, tuple[str, str]]:
    """Return of each document its title, the instances of its account, and its text."""
    sections = PAGE.read_text().split("\n## ")[1:]
    found = {one.partition("\n")[0]: (re.search(r"taskgov local --bare (\S+)`", one), one) for one in sections}
    return {title: (account[1], text) for title, (account, text) in found.items() if account}


def steps_of(text: str) -> list[Step]:
    blocks = re.findall(r"```console\n(.*?)```", text, re.DOTALL)
    steps = [re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] for block in blocks]
    return [Step(command, printed) for block in steps for command, _, printed in (one.partition("\n") for one in block)]


def alike(printed: str) -> list[str]:
    """Return what is printed, line by line, without what differs each time."""
    lines = []
    for line in printed.strip().splitlines():
        told = line.rstrip()
        for pattern, instead in VARYING:
            told = re.sub(pattern, instead, told)
        lines.append(told)
    return lines


class Person:
    """Somebody at a terminal, in `examples/jobs`; without kubectl, its stand-in comes first in the path."""

    def __init__(self, account: LocalAccount, server: StackServer, home: Path, kubectl: str) -> None:
        self._account = account
        self._home = home
        own = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "KUBE"))}
        self._environment = {
            **own,
            "HOME": str(home),
            "PATH": f"{home / 'bin'}:{own['PATH']}" if kubectl == STAND_IN else own["PATH"],
            "AWS_ENDPOINT_URL": server.url,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": "me",
            "AWS_SECRET_ACCESS_KEY": "any",
            "HYPERPOD_CLUSTER_ARN": account.cluster_arn,
        }

    def types(self, command: str) -> str:
        """Type a command, wait until what it causes has happened, and return what it printed."""
        done = subprocess.run(  # noqa: S603 - the page's own commands
            ["/bin/bash", "-o", "pipefail", "-c", command],
            cwd=ROOT / "examples" / "jobs",
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        if command.startswith("kubectl"):
            self._keep_a_token()
        self._wait()
        return done.stdout.replace(str(self._home), "~")

    def causes_runs(self) -> bool:
        """Say whether the calls for quotas have reached taskgov's intake, where a run begins."""
        deliveries = self._account.stack.timeline.of("delivery")
        return any("QuotaCallRule" in one.what and "IntakeQueue" in one.what for one in deliveries)

    def _keep_a_token(self) -> None:
        """Spare the further commands a start of the AWS CLI each: the first one has shown that its token is taken."""
        file = self._home / ".kube" / "config"
        held = yaml.safe_load(file.read_text())
        if "exec" in held["users"][0]["user"]:
            held["users"][0]["user"] = {"token": token_for("ml-eks", "https://sts.amazonaws.com")}
            file.write_text(yaml.safe_dump(held))

    def _wait(self) -> None:
        deadline = time.monotonic() + 30
        while self._moves():
            assert time.monotonic() < deadline, "the cluster does not come to rest"
            time.sleep(0.05)

    def _moves(self) -> bool:
        sagemaker = self._account.stack.sagemaker
        held = [
            *sagemaker.quotas(self._account.cluster_arn),
            sagemaker.scheduler_config(self._account.cluster_arn) or {},
        ]
        return self._account.cluster.next_due() is not None or any(one.get("Status") == "Creating" for one in held)


@pytest.fixture
def person(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Person]:
    workers, kubectl = request.param
    for program in ("aws", *(("kubectl",) if kubectl != STAND_IN else ())):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    if kubectl == STAND_IN:
        put_stand_in(tmp_path / "bin" / "kubectl")
    with LocalAccount(bare=workers_of(workers)) as account, StackServer(account.stack, ["127.0.0.1"]) as server:
        account.stack.sagemaker.governance.settle_seconds = 0.2
        yield Person(account, server, tmp_path, kubectl)


def put_stand_in(place: Path) -> None:
    """Put a program named kubectl there that runs the stand-in."""
    place.parent.mkdir()
    paths = ":".join(str(ROOT / one) for one in (".", "workstation", "layers/taskgov/python"))
    place.write_text(f'#!/bin/sh\nPYTHONPATH={paths} exec {sys.executable} -m tests.support.kubectl_client "$@"\n')
    place.chmod(0o755)


@pytest.mark.walkthroughs
@pytest.mark.parametrize(
    ("person", "title"),
    [
        pytest.param((account, kubectl), title, id=f"{title}-{kubectl}")
        for title, (account, _) in documents().items()
        for kubectl in (["kubectl"] if UPDATES else ["kubectl", STAND_IN])
    ],
    indirect=["person"],
)
def test_what_the_document_shows_is_what_one_sees(person: Person, title: str) -> None:
    text = documents()[title][1]
    shown = []
    for step in steps_of(text):
        printed = person.types(step.command)
        shown.append(f"$ {step.command}\n{printed.strip()}\n")
        if not UPDATES:
            assert alike(printed) == alike(step.printed), f"$ {step.command}"
    if UPDATES:
        write(text, shown)
    assert person.causes_runs()


def write(text: str, shown: list[str]) -> None:
    """Write what was typed and printed into the page."""
    left = iter(shown)

    def block(found: re.Match[str]) -> str:
        steps = len(re.findall(r"^\$ ", found[1], flags=re.MULTILINE))
        return f"```console\n{chr(10).join(next(left) for _ in range(steps))}```"

    PAGE.write_text(PAGE.read_text().replace(text, re.sub(r"```console\n(.*?)```", block, text, flags=re.DOTALL), 1))


def test_the_page_has_a_section_for_each_document() -> None:
    page = PAGE.read_text()
    assert [f"(document 00{number})" in page for number in range(5)] == [True] * 5
    assert len(documents()) == 5


def test_the_page_applies_every_manifest() -> None:
    files = sorted((ROOT / "examples" / "jobs").rglob("*.yaml"))
    assert [file.name for file in files if f"{file.parent.name}/{file.name}" not in PAGE.read_text()] == []
