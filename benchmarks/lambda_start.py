"""How long functions take to start, and how large they are: `python -m benchmarks.lambda_start`.

Each function runs in the Lambda image, behind the runtime interface emulator that SAM CLI ships, against `taskgov
local`. The yardstick is an empty handler that imports boto3 and creates one client, in the same run: milliseconds of a
desktop say little of Lambda, ratios say more. Needs Docker.
"""

import io
import json
import os
import subprocess
import sys
import time
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import samcli

from taskgov_embedded.cloudformation.template import translate
from tests.local_invoke import tools

AIM = 2.0
"""Times of the empty handler that a function's init may take."""
IMPORTS = 7
STARTS = 3
WARM = 10
PORT = 9080
EMULATOR = Path(samcli.__file__).parent / "local" / "rapid" / "aws-lambda-rie-x86_64"
BUILT = tools.ROOT / ".aws-sam" / "build"
SAMPLES = {
    "ReadSnapshotFunction": "read_snapshot",
    "PlanQuotasFunction": "plan_quotas",
    "ApplyChangeFunction": "apply_change",
    "VerifyPlanFunction": "verify_plan",
    "PublishUsageFunction": "publish_usage",
    "EstimateStartsFunction": "estimate_starts",
    "AuditClusterFunction": "audit_cluster",
    "ReceiveEventFunction": "receive_event.sqs",
}
EMPTY = """
import boto3

client = boto3.client("s3")


def handler(event, context):
    return {}
"""
WARM_AIM_MS = 5.0
"""Milliseconds that a warm handler may add to its use case."""
OVERHEAD = """
import json, sys, time
from types import SimpleNamespace
import app

name = next(name for name, at in vars(app).items() if getattr(at, "__module__", "").startswith("taskgov.bootstrap"))
use_case, kept = getattr(app, name)(), {}


class Answered:
    def __call__(self, *asked):
        return kept[""] if "" in kept else kept.setdefault("", use_case(*asked))

    def __getattr__(self, method):
        def call(*asked):
            return kept[method] if method in kept else kept.setdefault(method, getattr(use_case, method)(*asked))

        return call


answered = Answered()
setattr(app, name, lambda: answered)
context = SimpleNamespace(
    function_name="function",
    memory_limit_in_mb=512,
    invoked_function_arn="arn:aws:lambda:us-east-1:111122223333:function:function",
    aws_request_id="0",
    get_remaining_time_in_millis=lambda: 60_000,
)
event, times = json.load(sys.stdin), []
for _ in range(51):
    began = time.perf_counter()
    app.handler(event, context)
    times.append(time.perf_counter() - began)
print(sorted(times[1:])[25])
"""
"""What a handler does beside its use case (parse, log, map): the use case is asked once, and its answer given again."""
IMPORT = "import time; began = time.perf_counter(); import app; print(time.perf_counter() - began)"


@dataclass(frozen=True, slots=True)
class Code:
    """What is mounted: the function's directory, its layers, and its variables."""

    directory: Path
    layers: tuple[Path, ...]
    environment: Mapping[str, str]

    @property
    def mounts(self) -> list[str]:
        """Options of `docker run`; bytecode is not kept, as in Lambda, where the directories are read-only."""
        path = ":".join(["/var/task", *(f"/layers/{layer.name}/python" for layer in self.layers), "/var/runtime"])
        folders = [(self.directory, "/var/task"), (EMULATOR, "/rie")]
        folders += [(layer, f"/layers/{layer.name}") for layer in self.layers]
        variables = {
            **self.environment,
            "PYTHONPATH": path,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
        }
        return [
            *(part for source, target in folders for part in ("-v", f"{source}:{target}:ro")),
            *(part for name, value in variables.items() for part in ("-e", f"{name}={value}")),
        ]

    def zipped_mib(self) -> float:
        """Return the size of what is uploaded, function and layers."""
        return sum(_zipped(folder) for folder in (self.directory, *self.layers)) / 2**20


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds of import, of the first invocation (with it), of a warm one, and of the handler without its use case.

    `ratio` is the import's, in times of the empty handler's right before: the median of such pairs, since a machine
    that does other work too is slow for some seconds and quick for others.
    """

    init: float
    ratio: float
    first: float
    warm: float
    own: float


def main() -> int:
    """Measure everything and print a table; return the exit code."""
    missing = tools.what_is_missing()
    if missing is not None:
        print(f"SKIPPED: {missing}")
        return 0
    tools.build()
    os.environ.setdefault("AWS_DEFAULT_REGION", "us-east-1")  # the translator asks for one
    columns = ("init s", "x empty", "first s", "x empty", "warm ms", "own ms", "zip MiB")
    print(" ".join([f"{'function':24}", *(f"{column:>8}" for column in columns)]))
    with TemporaryDirectory() as scratch, tools.local_account() as account:
        (Path(scratch) / "app.py").write_text(EMPTY)
        keys = {"AWS_ACCESS_KEY_ID": "anybody", "AWS_SECRET_ACCESS_KEY": "any"}
        yardstick = Code(Path(scratch), (), keys)
        empty = _measure(yardstick, yardstick, b"{}")
        _print("an empty handler", empty, empty, 0.0)
        found = [_measured(name, account["functions"][name], yardstick, empty) for name in SAMPLES]
    largest, slowest = max(one.ratio for one in found), max(one.own * 1000 for one in found)
    print(f"aim: init at most {AIM} times the empty handler's; the largest is {largest:.1f} times")
    print(f"aim: warm, a handler adds less than {WARM_AIM_MS:g} ms to its use case; the most is {slowest:.2f} ms")
    return 0


def _measured(name: str, function: Mapping[str, Any], yardstick: Code, empty: Figures) -> Figures:
    code = Code(BUILT / name, _layers(name), function["environment"] | tools.keys_of(function))
    figures = _measure(code, yardstick, (tools.ROOT / "events" / f"{SAMPLES[name]}.json").read_bytes())
    _print(name, figures, empty, code.zipped_mib())
    return figures


def _print(name: str, one: Figures, empty: Figures, size: float) -> None:
    print(
        f"{name:24} {one.init:8.2f} {one.ratio:8.1f} {one.first:8.2f} {one.first / empty.first:8.1f} "
        f"{one.warm * 1000:8.0f} {one.own * 1000:8.2f} {size:8.1f}",
        flush=True,
    )


def _measure(code: Code, yardstick: Code, event: bytes) -> Figures:
    pairs = [(_import_seconds(yardstick), _import_seconds(code)) for _ in range(IMPORTS)]
    firsts, warms = [], []
    for _ in range(STARTS):
        with _running(code):
            firsts.append(_invoke_seconds(event))
            warms += [_invoke_seconds(event) for _ in range(WARM)]
    return Figures(
        init=median(mine for _, mine in pairs),
        ratio=median(mine / empty for empty, mine in pairs),
        first=median(firsts),
        warm=median(warms),
        own=0.0 if code is yardstick else _own_seconds(code, event),
    )


def _import_seconds(code: Code) -> float:
    command = ["docker", "run", "--rm", *code.mounts, "--entrypoint", "python3", tools.IMAGE, "-c", IMPORT]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603 - our own command
    return float(done.stdout)


def _own_seconds(code: Code, event: bytes) -> float:
    command = ["docker", "run", "-i", "--rm", *code.mounts, "--entrypoint", "python3", tools.IMAGE, "-c", OVERHEAD]
    done = subprocess.run(command, input=event, stdout=subprocess.PIPE, check=True)  # noqa: S603 - our own command
    return float(done.stdout.splitlines()[-1])


@contextmanager
def _running(code: Code) -> Iterator[None]:
    """Run the emulator with the function behind it; it starts the function at the first invocation."""
    command = ["docker", "run", "-d", "--rm", "-p", f"127.0.0.1:{PORT}:8080", *code.mounts, "--entrypoint", "/rie"]
    started = subprocess.run(  # noqa: S603 - our own command
        [*command, tools.IMAGE, "python3", "-m", "awslambdaric", "app.handler"],
        capture_output=True,
        text=True,
        check=True,
    )
    time.sleep(1)  # the emulator listens; a connection to ask it would be an invocation
    try:
        yield
    finally:
        subprocess.run(["docker", "kill", started.stdout.strip()], capture_output=True, check=True)  # noqa: S603, S607 - as above


def _invoke_seconds(event: bytes) -> float:
    url = f"http://127.0.0.1:{PORT}/2015-03-31/functions/function/invocations"
    began = time.perf_counter()
    with urllib.request.urlopen(url, data=event, timeout=120) as response:
        answer = json.loads(response.read())
    if "errorType" in answer:
        raise SystemExit(f"the function failed: {answer}")
    return time.perf_counter() - began


def _layers(name: str) -> tuple[Path, ...]:
    """Return the built directories of a function's layers (the translator adds a digest to their names)."""
    function = translate(tools.ROOT / "template.yaml", {}).resources_of("AWS::Lambda::Function")[name]
    built = [path for path in sorted(BUILT.iterdir()) if path.name.endswith("Layer")]
    return tuple(path for layer in function["Layers"] for path in built if layer["Ref"].startswith(path.name))


def _zipped(folder: Path) -> int:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))
    return buffer.tell()


if __name__ == "__main__":
    sys.exit(main())
