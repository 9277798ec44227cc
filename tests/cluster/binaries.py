"""Where are the programs of a real cluster? Built from source with Go, once a version, and kept in the user's cache."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

TOOLS: Final = Path(__file__).parent / "tools"
CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "taskgov" / "cluster"
PROGRAMS: Final = {
    "etcd": "go.etcd.io/etcd/server/v3",
    "kueue": "sigs.k8s.io/kueue/cmd/kueue",
    "kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver",
}
KUBERNETES: Final = "v1.36.3"
"""As in go.mod. An unstamped server says v0.0.0, by which Kueue cannot tell what the server can do."""
_VERSION: Final = "k8s.io/component-base/version"
_STAMPS: Final = f"-s -w -X {_VERSION}.gitVersion={KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor=36"

_COLLECTOR: Final = {"GOGC": "off", "GOMEMLIMIT": "2GiB"}
"""The compiler and the linker collect garbage only near this limit: a quarter less processor time for etcd."""


@dataclass(frozen=True, slots=True)
class Modules:
    """Folders of Go modules from which manifests are read: Kueue's, and that of the jobs it integrates."""

    kueue: Path
    training_operator: Path


@dataclass(frozen=True, slots=True)
class Binaries:
    """The programs, and the modules whose CRDs and webhook configurations are installed."""

    folder: Path
    modules: Modules


def binaries() -> Binaries:
    """Build what is not built yet. Skips the test when there is no Go on this machine."""
    if shutil.which("go") is None:
        pytest.skip("no Go to build an API server and Kueue with, and TASKGOV_TEST_KUBECONFIG is not set")
    sums = (TOOLS / "go.mod").read_bytes() + (TOOLS / "go.sum").read_bytes()
    folder = CACHE / hashlib.sha256(sums + _STAMPS.encode()).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    for name, package in PROGRAMS.items():
        if not (folder / name).exists():
            _build(package, folder / name)
    return Binaries(folder, Modules(_module("sigs.k8s.io/kueue"), _module("github.com/kubeflow/training-operator")))


def requests_program(folder: Path) -> Path:
    """Build the program that asks Kueue's own packages about requests. Skips the test when there is no Go."""
    if shutil.which("go") is None:
        pytest.skip("no Go to build Kueue's packages with")
    _build("./requests", folder / "requests")
    return folder / "requests"


def kueue_module() -> Path | None:
    """Return the folder of Kueue's module where it was fetched before; `None` without Go or before that."""
    if shutil.which("go") is None:
        return None
    folder = _module("sigs.k8s.io/kueue")
    return folder if folder.is_absolute() else None


def _module(path: str) -> Path:
    return Path(_go("list", "-mod=readonly", "-m", "-f", "{{.Dir}}", path).strip())


def _build(package: str, target: Path) -> None:
    """Build beside the target and move it there when whole: an interrupted build leaves nothing that looks done."""
    print(f"building {package} (some minutes, once)", flush=True)
    unfinished = target.with_suffix(".building")
    _go("build", "-mod=readonly", "-trimpath", "-ldflags", _STAMPS, "-o", str(unfinished), package)
    unfinished.rename(target)


def _go(*arguments: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", **_COLLECTOR}
    command = [str(shutil.which("go")), *arguments]
    done = subprocess.run(command, cwd=TOOLS, env=environment, check=True, text=True, stdout=subprocess.PIPE)  # noqa: S603 - fixed words
    return done.stdout


if __name__ == "__main__":
    print(f"built: {binaries().folder}")
