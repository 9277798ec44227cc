"""Which extra of the package brings a module that is not installed, and the command that installs it."""

from __future__ import annotations

import json
import shlex
import sys
from importlib import metadata
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

EXTRAS: Final = {
    "matplotlib": "plots",
    **dict.fromkeys(("cryptography", "jsonata", "moto", "samtranslator", "time_machine", "werkzeug"), "embedded"),
}
"""Module -> the extra that brings it."""
_PACKAGE: Final = "taskgov"


def command_for(extra: str) -> str:
    """Return the command that installs the package again with this extra, from where it was installed."""
    source = _source()
    if source.get("dir_info", {}).get("editable"):
        words = ["--editable", f"{unquote(urlsplit(source['url']).path)}[{extra}]"]
    else:
        words = [f"{_PACKAGE}[{extra}]{_address(source)}"]
    return shlex.join([*_installer(), *words])


def _installer() -> list[str]:
    """Return the words before what is installed: pipx's, or pip's of this Python."""
    if (Path(sys.prefix) / "pipx_metadata.json").exists():
        return ["pipx", "install", "--force"]
    return [sys.executable, "-m", "pip", "install"]


def _source() -> dict[str, Any]:
    """Return where the package was installed from (direct_url.json, PEP 610); empty for one of an index."""
    try:
        noted = metadata.distribution(_PACKAGE).read_text("direct_url.json")
    except metadata.PackageNotFoundError:  # a checkout on PYTHONPATH
        return {"url": Path(__file__).parents[2].as_uri(), "dir_info": {"editable": True}}
    found: dict[str, Any] = json.loads(noted or "{}")
    return found


def _address(source: dict[str, Any]) -> str:
    """Return what comes behind the name of the package in a requirement (PEP 508): ` @ URL`, or nothing."""
    if not source:
        return ""
    repository = source.get("vcs_info")
    if repository is None:
        return f" @ {source['url']}"
    revision = repository.get("requested_revision", repository["commit_id"])
    return f" @ {repository['vcs']}+{source['url']}@{revision}"
