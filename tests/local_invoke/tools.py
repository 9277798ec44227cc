"""What `tests.local_invoke.run` starts: Docker, SAM CLI and `taskgov local`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support.tools import SAM

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
IMAGE = "public.ecr.aws/lambda/python:3.13-x86_64"
SUBSTITUTE = ROOT.parent / "shared" / "lambda-image"
"""Scripts that start Docker and make a stand-in for the image, where it cannot be pulled; used when they are there."""
START_SECONDS = 60
OLDER_BOTO3 = "boto3==1.42.30"
"""A release that does not know `AbsoluteBorrowLimits`, as a runtime may have it."""


def what_is_missing() -> str | None:
    """Return what has to be there before a container can run, or None; try to get it first."""
    if SUBSTITUTE.is_dir():
        for script in ("start-docker", "build"):
            done = _quiet([str(SUBSTITUTE / script)])
            if done.returncode != 0:
                return f"{SUBSTITUTE / script} failed: {done.stderr.strip()[-300:]}"
    if shutil.which("docker") is None or _quiet(["docker", "info"]).returncode != 0:
        return "no Docker Engine answers; install and start Docker"
    if _quiet(["docker", "image", "inspect", IMAGE]).returncode != 0 and _quiet(["docker", "pull", IMAGE]).returncode:
        return f"the image {IMAGE} is not here and cannot be pulled"
    return None


def build() -> None:
    """Run `sam build` as anybody would."""
    subprocess.run([str(SAM), "build"], cwd=ROOT, env=_environment(), check=True, capture_output=True)  # noqa: S603 - our own command


@contextmanager
def local_account() -> Iterator[dict[str, Any]]:
    """Run `taskgov local`, and give what it says of itself."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [str(BIN / "taskgov"), "local", "--json"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            raise SystemExit("`taskgov local` did not start; what it said is above")
        yield json.loads(line)
    finally:
        _end(process)


def invoke(logical_id: str, sample: str, function: Mapping[str, str], variables: Path) -> Any:
    """Run `sam local invoke` with the keys of the function's role; return the answer."""
    command = ["local", "invoke", logical_id, "-e", f"events/{sample}.json", "--skip-pull-image"]
    done = subprocess.run(  # noqa: S603 - our own command
        [str(SAM), *command, "--env-vars", str(variables)],
        cwd=ROOT,
        env=_environment() | keys_of(function),
        check=False,
        capture_output=True,
        text=True,
    )
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        return {"errorType": "NoAnswer", "errorMessage": (done.stdout + done.stderr)[-2000:]}


def boto3_beside_an_older_one(scratch: Path) -> str:
    """Return where a function finds boto3, and which, when the runtime has an older one; what went wrong otherwise.

    The search path is the one that AWS documents: the function, its layers (`/opt/python`), the runtime's own.
    """
    runtime = scratch / "runtime"
    installed = _quiet([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(runtime), OLDER_BOTO3])
    if installed.returncode != 0:
        return installed.stderr[-2000:]
    layer = ROOT / ".aws-sam" / "build" / "CoreLayer"
    mounts = [f"--volume={runtime}:/var/runtime:ro", f"--volume={layer}:/opt:ro"]
    path = "--env=PYTHONPATH=/var/task:/opt/python:/var/runtime"
    script = "import boto3, botocore; print(boto3.__file__, boto3.__version__, botocore.__file__)"
    command = ["docker", "run", "--rm", *mounts, path, "--entrypoint", "python3", IMAGE, "-c", script]
    done = _quiet(command)
    return done.stdout.strip() or done.stderr[-2000:]


@contextmanager
def start_lambda(function: Mapping[str, str], variables: Path, port: int) -> Iterator[None]:
    """Run `sam local start-lambda` until the body ends."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [str(SAM), "local", "start-lambda", "-p", str(port), "--skip-pull-image", "--env-vars", str(variables)],
        cwd=ROOT,
        env=_environment() | keys_of(function),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        _end(process)


def _end(process: subprocess.Popen[Any]) -> None:
    """Ask a server to end. Not as Ctrl-C would: what runs in the background of a script is deaf to that."""
    process.terminate()
    process.wait(START_SECONDS)


def run(command: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a client of AWS as anybody, in the repository."""
    keys = {"AWS_ACCESS_KEY_ID": "anybody", "AWS_SECRET_ACCESS_KEY": "any", "AWS_MAX_ATTEMPTS": "1"}
    return subprocess.run(  # noqa: S603 - our own commands
        command, cwd=ROOT, env=_environment() | keys, check=False, capture_output=True, text=True
    )


def free_port() -> int:
    """Return a port of loopback that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def keys_of(function: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that make a caller of AWS the function's role."""
    return {
        "AWS_ACCESS_KEY_ID": function["accessKeyId"],
        "AWS_SECRET_ACCESS_KEY": function["secretAccessKey"],
        "AWS_SESSION_TOKEN": function["sessionToken"],
    }


def _environment() -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return kept | {"AWS_DEFAULT_REGION": "us-east-1", "SAM_CLI_TELEMETRY": "0"}


def _quiet(command: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - our own commands
