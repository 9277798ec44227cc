"""The command that installs an extra fits how the package was installed."""

import json
import shlex
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement

from taskgov_cli.extras import EXTRAS, command_for

ROOT = Path(__file__).parents[2]
PIP = [sys.executable, "-m", "pip", "install"]
SOURCES: dict[str, tuple[dict[str, Any] | None, list[str]]] = {
    "a package index": (None, ["taskgov[embedded]"]),
    "a wheel": (
        {"url": "file:///a%20b/taskgov-0.1.0-py3-none-any.whl", "archive_info": {}},
        ["taskgov[embedded] @ file:///a%20b/taskgov-0.1.0-py3-none-any.whl"],
    ),
    "a checkout": ({"url": "file:///a/taskgov", "dir_info": {}}, ["taskgov[embedded] @ file:///a/taskgov"]),
    "a checkout, editable": (
        {"url": "file:///a%20b/taskgov", "dir_info": {"editable": True}},
        ["--editable", "/a b/taskgov[embedded]"],
    ),
    "a branch of a repository": (
        {
            "url": "https://git.example.com/a/taskgov",
            "vcs_info": {"vcs": "git", "requested_revision": "v1", "commit_id": "0a1b"},
        },
        ["taskgov[embedded] @ git+https://git.example.com/a/taskgov@v1"],
    ),
    "a repository": (
        {"url": "ssh://git@git.example.com/a/taskgov", "vcs_info": {"vcs": "git", "commit_id": "0a1b"}},
        ["taskgov[embedded] @ git+ssh://git@git.example.com/a/taskgov@0a1b"],
    ),
}


class Installed:
    """A distribution whose installer noted this."""

    def __init__(self, noted: dict[str, Any] | None) -> None:
        self._noted = noted

    def read_text(self, name: str) -> str | None:
        assert name == "direct_url.json"
        return None if self._noted is None else json.dumps(self._noted)


@pytest.mark.parametrize("source", SOURCES)
def test_it_is_installed_again_from_the_same_place(source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    noted, want = SOURCES[source]
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(noted))
    words = shlex.split(command_for("embedded"))
    assert words == [*PIP, *want]
    if "--editable" not in words:
        assert Requirement(words[-1]).extras == {"embedded"}


def test_without_an_installation_it_is_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_distribution(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", no_distribution)
    assert shlex.split(command_for("plots")) == [*PIP, "--editable", f"{ROOT}[plots]"]


def test_pipx_installs_what_pipx_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipx_metadata.json").write_text("{}")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(metadata, "distribution", lambda _: Installed(None))
    assert command_for("embedded") == "pipx install --force 'taskgov[embedded]'"


def test_every_extra_is_one_of_the_package() -> None:
    assert set(EXTRAS.values()) == set(
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    )
