"""Type kubectl commands in a test: with the real program, where it is installed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Typed:
    """What a command printed, and how it ended."""

    code: int
    out: str
    err: str


class Kubectl:
    """kubectl with a kubeconfig of its own for one API server. Skips the test where kubectl is not installed.

    `token` is sent as the bearer token; the certificate of a server with TLS is not checked.
    """

    def __init__(self, home: Path, server: str, token: str | None = None) -> None:
        program = shutil.which("kubectl")
        if program is None:
            pytest.skip("kubectl is not installed")
        self._program = program
        self._home = home
        cluster = {"server": server, **({"insecure-skip-tls-verify": True} if server.startswith("https") else {})}
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": cluster}],
            "users": [{"name": "me", "user": {"token": token} if token else {}}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
            "current-context": "it",
        }
        (home / "kubeconfig").write_text(json.dumps(config))

    def run(self, *arguments: str, stdin: str | None = None, cwd: Path | None = None) -> Typed:
        """Type a command and return what came of it."""
        environment = {**os.environ, "KUBECONFIG": str(self._home / "kubeconfig"), "HOME": str(self._home)}
        done = subprocess.run(  # noqa: S603 - our own words
            [self._program, *arguments],
            input=stdin,
            cwd=cwd,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return Typed(done.returncode, done.stdout, done.stderr)

    def __call__(self, *arguments: str, stdin: str | None = None, cwd: Path | None = None) -> str:
        """Type a command that has to succeed and return what it printed."""
        typed = self.run(*arguments, stdin=stdin, cwd=cwd)
        assert typed.code == 0, typed.err
        return typed.out
