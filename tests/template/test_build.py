"""`sam build` on a host that has no Python 3.13."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.template.conftest import ROOT

pytestmark = pytest.mark.slow  # it asks the package index for wheels


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build into a directory of its own, with a PATH that holds the tools of the Makefile and no Python at all."""
    home = tmp_path_factory.mktemp("sam")
    tools = home / "bin"
    tools.mkdir()
    for name in ("make", "sh", "tar", "cp", "mkdir", "rm"):
        (tools / name).symlink_to(str(shutil.which(name)))
    environment = {
        **{name: value for name, value in os.environ.items() if name.startswith(("PIP_", "HTTP", "http", "SSL"))},
        "HOME": os.environ.get("HOME", str(home)),
        "PATH": str(tools),
        "PYTHON": sys.executable,
        "AWS_DEFAULT_REGION": "us-east-1",
        "SAM_CLI_TELEMETRY": "0",
    }
    sam = Path(sys.executable).parent / "sam"
    command = [str(sam), "build", "--build-dir", str(home / "build"), "--no-cached"]
    done = subprocess.run(  # noqa: S603 - our own command
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    if "No matching distribution" in done.stderr or "Temporary failure in name resolution" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    return home / "build"


def size(directory: Path) -> float:
    """Return the size in MiB."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 2**20


def test_functions_are_their_code_and_nothing_else(built: Path) -> None:
    functions = [path for path in built.iterdir() if path.name.endswith("Function")]
    assert len(functions) == 7
    assert {tuple(sorted(file.name for file in path.iterdir())) for path in functions} == {("app.py",)}


def test_layers_hold_wheels_for_lambda_and_no_bytecode(built: Path) -> None:
    assert list(built.glob("*Layer/python/**/*.cpython-313-*.so")) != []
    assert [path for path in built.glob("*Layer/python/**/*.so") if "cpython-313" not in path.name] == []
    assert list(built.glob("*Layer/**/__pycache__")) == []
    assert (built / "TaskgovLayer" / "python" / "taskgov" / "py.typed").exists()


def test_a_function_with_all_its_layers_stays_far_below_lambdas_limit_of_250_mib(built: Path) -> None:
    assert sum(size(path) for path in built.iterdir() if path.name.endswith("Layer")) < 120
    assert size(built / "CoreLayer") < 20
