"""Command lines that nobody would type on purpose: every command with bad options, files, environments and answers.

A case is its number. Commands run in this process; AWS and Kubernetes are answers that are made up here, so nothing
leaves the machine. `demo`, `local` and `smoke` get only what they refuse: what they do when they start is tested
elsewhere.
"""

from __future__ import annotations

import http.client
import json
import signal
import time
import webbrowser
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args
from unittest import mock

import boto3
import typer
import yaml
from botocore.awsrequest import AWSResponse
from botocore.exceptions import EndpointConnectionError, ReadTimeoutError
from typer.testing import CliRunner

from taskgov_cli.main import app

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from random import Random

ROOT: Final = Path(__file__).parents[2]
SNAPSHOT: Final = (ROOT / "examples" / "snapshot.json").read_bytes()
POLICY: Final = (ROOT / "examples" / "policies" / "flexible.yaml").read_bytes()
ARN: Final = json.loads(SNAPSHOT)["cluster"]["arn"]
EXIT_CODES: Final = frozenset({0, 1, 2, 3, 4, 130})
SECONDS: Final = 60
KEPT: Final = b"what was there\n"
ODD: Final = (
    "", " ", "-", "--", "0", "-1", "1", "3.5", "1e309", "nan", "\x1b[31m", "[/b]", "ü", "\udcff", "../../x", "a" * 3000,
    "%s", "{}", "a=b", "a:b", "=", ":", "team-a=1", "1x", "0xml.g5.8xlarge", "-1xml.g5.8xlarge", "9" * 30, "\n", "\t",
    "2026-13-45", "forge", "plan-0123456789abcdef", "plan-0123456789abcdef:x", "*", "$(id)", "arn:aws:sagemaker:::x",
)  # fmt: skip
LIKELY: Final[Mapping[str, tuple[str, ...]]] = {
    "cluster": ("ml-cluster", ARN, "arn:aws:eks:us-east-1:111122223333:cluster/x", "arn:aws:iam::1:role/x"),
    "stack": ("taskgov", "no stack"),
    "team": ("research", "nobody"),
    "lose_nodes": ("1xml.g5.8xlarge", "100xml.g5.8xlarge", "1xml.none"),
    "add_nodes": ("1xml.g5.8xlarge", "100000xml.g5.8xlarge"),
    "set_quota": ("research.ml.g5.8xlarge=1", "research.ml.g5.8xlarge=-1", "research.ml.g5.8xlarge:vcpu=x"),
    "weight": ("research=50", "research=1000"),
    "what": ("2xml.g5.8xlarge", "0xml.g5.8xlarge"),
    "until": ("friday", "2026-11-30", "2d", "never"),
    "start": ("now", "2026-11-20T09:00Z"),
    "at": ("2026-11-20T09:00:00", "9999-12-31T23:59:59", "0001-01-01T00:00:00"),
    "plan_id": ("plan-0123456789abcdef",),
    "runs": ("research/train=2h", "x=1d", "x=1y"),
    "failures": ("30d,12h", "0d,0h", "1d"),
    "days": ("0", "1", "0.001"),
    "about": ("research", "speech"),
    "name": ("research", "speech"),
}
ENVIRONMENTS: Final[tuple[dict[str, str | None], ...]] = (
    {},
    {},
    {"AWS_DEFAULT_REGION": None, "AWS_REGION": None},
    {"AWS_DEFAULT_REGION": "bad region", "AWS_REGION": None},
    {"AWS_PROFILE": "nope"},
    {"AWS_CONFIG_FILE": "{binary}", "AWS_PROFILE": "x"},
    {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None, "AWS_SESSION_TOKEN": None},
    {"AWS_ACCESS_KEY_ID": "only"},
    {"AWS_ENDPOINT_URL": "http://127.0.0.1:1"},
    {"AWS_ENDPOINT_URL": "no url"},
    {"HOME": None, "XDG_CONFIG_HOME": None},
    {"HOME": "/nowhere", "KUBECONFIG": "{binary}"},
    {"KUBECONFIG": "{missing}"},
    {"KUBECONFIG": "{truncated}"},
    {"COLUMNS": "40"},
    {"COLUMNS": "1"},
    {"COLUMNS": "100000"},
    {"NO_COLOR": "1", "FORCE_COLOR": "1", "COLUMNS": "40"},
    {"TERM": "dumb"},
    {"TASKGOV_CONFIG": "{binary}"},
    {"TASKGOV_CONFIG": "{missing}"},
    {"TASKGOV_CONFIG": "{folder}"},
    {"TASKGOV_CLUSTER": "ml-cluster", "TASKGOV_STACK": "taskgov", "TASKGOV_CONTEXT": "x"},
    {"TASKGOV_CLUSTER": "\x1b[31m", "TASKGOV_STACK": "\x00"[:0] + "a b"},
    {"KUBECONFIG": "{latin}", "TASKGOV_CLUSTER": "ml-cluster", "TASKGOV_CONTEXT": "x"},
    {"KUBECONFIG": "{list}", "TASKGOV_CLUSTER": "ml-cluster", "TASKGOV_CONTEXT": "x"},
    {"TASKGOV_FORMAT": "csv"},
    {"TASKGOV_FORMAT": "odd"},
    {"TASKGOV_POLICY": "{truncated}"},
    {"GITHUB_ACTIONS": "true", "GITHUB_EVENT_PATH": "{binary}", "GITHUB_REPOSITORY": "a/b"},
    {"GITLAB_CI": "true", "CI_PROJECT_ID": "x", "CI_API_V4_URL": "no url"},
)


def files(folder: Path) -> dict[str, Path]:
    """Write the files that commands are given; return them by what they are."""
    policy, snapshot = yaml.safe_load(POLICY), json.loads(SNAPSHOT)
    own = policy | {"cluster": {"name": snapshot["cluster"]["name"], "arn": ARN}}
    contents: dict[str, bytes] = {
        "snapshot": SNAPSHOT,
        "policy": POLICY,
        "own": yaml.safe_dump(own).encode(),
        "latin": "# für uns\n".encode("latin-1") + POLICY,
        "utf16": POLICY.decode().encode("utf-16"),
        "binary": bytes(range(256)) * 4,
        "nul": b"\0" * 100,
        "empty": b"",
        "blank": b"\n \n",
        "truncated": SNAPSHOT[: len(SNAPSHOT) // 2],
        "truncated-policy": POLICY[: len(POLICY) // 2],
        "other-version": POLICY.replace(b"taskgov/v1", b"taskgov/v9"),
        "list": b"[1, 2, 3]",
        "number": b"4",
        "null": b"null",
        "text": b'"text"',
        "deep": b"[" * 20_000,
        "bomb": b"a: &a [x, x, x]\nb: &b [*a, *a, *a]\nc: &c [*b, *b, *b]\nd: [*c, *c, *c, *c]\n",
        "loop": b"a: &a\n  b: *a\n",
        "tag": b"a: !!python/object/apply:os.system ['true']\n",
        "huge": b"a: " + b"x" * 3_000_000,
        "no-cluster": json.dumps({**snapshot, "cluster": None}).encode(),
        "no-nodes": json.dumps({**snapshot, "nodes": "none"}).encode(),
        "numbers": SNAPSHOT.replace(b"1", b"1e308"),
        "far": SNAPSHOT.replace(b"2026", b"9999"),
        "job": b"apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: 4}\n",
        "jobs": b"---\n---\nkind: List\nitems: 4\n",
        "trace.csv": b"jobid,user,vc\n1,2\n,,\n",
        "openb.csv": b"name,cpu_milli,num_gpu,creation_time,deletion_time\na,b,c,d,e\n",
    }
    found = {name: folder / name for name in contents}
    for name, body in contents.items():
        found[name].write_bytes(body)
    (folder / "folder").mkdir()
    closed = folder / "closed"
    closed.write_bytes(SNAPSHOT)
    closed.chmod(0)
    return found | {"folder": folder / "folder", "missing": folder / "missing", "closed": closed}


def commands() -> dict[tuple[str, ...], Any]:
    """Return every command by its words."""
    found: dict[tuple[str, ...], Any] = {}

    def walk(command: Any, words: tuple[str, ...]) -> None:
        for name, each in getattr(command, "commands", {}).items():
            walk(each, (*words, name))
        if not hasattr(command, "commands"):
            found[words] = command

    walk(typer.main.get_command(app), ())
    return found


@dataclass
class Case:
    """One command line, in one environment."""

    words: list[str]
    environment: dict[str, str | None]
    answers: str
    outputs: list[Path] = field(default_factory=list)

    def __str__(self) -> str:
        """Say what was typed."""
        return f"{self.words!r:.2000} with {self.environment} where AWS is {self.answers}"


class Maker:
    """Makes the cases in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder, self.files, self.commands = folder, files(folder), commands()

    def case(self, chance: Random) -> Case:
        """Return a case."""
        words = chance.choice(list(self.commands))
        environment = dict(chance.choice(ENVIRONMENTS))
        for name, value in environment.items():
            for file, path in self.files.items():
                value = value.replace(f"{{{file}}}", str(path)) if value else value  # noqa: PLW2901 - its place is filled
            environment[name] = value
        answers = chance.choice(("unreachable", "denied", "odd", "a portal", "slow", "HTML"))
        case = Case([*words], environment, answers)
        params = self.commands[words].params
        for param in params:
            case.words += self._typed(param, chance, case)
        if chance.random() < 0.1:
            case.words.insert(chance.randrange(len(case.words) + 1), chance.choice((*ODD, "--no-such", "-z", "--json")))
        if words[0] in {"demo", "local", "smoke"}:
            case.words.append("--no-such-option")  # what they start is not for a fuzz
        return case

    def _typed(self, param: Any, chance: Random, case: Case) -> list[str]:
        is_argument = param.param_type_name == "argument"
        if param.name in {"help", "watch"} or chance.random() > (0.9 if param.required else 0.35):
            return []
        if getattr(param, "is_flag", False):
            return [chance.choice([*param.opts, *param.secondary_opts])]
        value = self._value(param, chance, case)
        return [value] if is_argument else [chance.choice(param.opts), value]

    def _value(self, param: Any, chance: Random, case: Case) -> str:
        if param.name == "wait":
            return "0"
        if param.name in {"output", "report_file", "plot", "reports"}:
            return self._output(param.name, chance, case)
        kind = param.type_descriptor.annotation
        choices = list(kind) if isinstance(kind, type) and issubclass(kind, Enum) else get_args(kind)
        if choices and isinstance(choices[0], str) and chance.random() < 0.8:
            return str(chance.choice(choices))
        if "Path" in str(kind) and chance.random() < 0.95:
            good = {"policy": ("own", "policy"), "snapshot": ("snapshot",)}.get(param.name, ())
            return str(self.files[chance.choice(good if good and chance.random() < 0.5 else list(self.files))])
        if param.name in LIKELY and chance.random() < 0.7:
            return chance.choice(LIKELY[param.name])
        return chance.choice(ODD)

    def _output(self, name: str, chance: Random, case: Case) -> str:
        if chance.random() < 0.5:
            return str(chance.choice((self.files["folder"], self.files["missing"] / "x", Path("/dev/null"))))
        file = self._folder / f"out.{chance.choice(('svg', 'json', 'html'))}"
        file.write_bytes(KEPT)
        case.outputs.append(file)
        return str(file)


class _Raw:
    """The body of a made-up answer."""

    def __init__(self, body: bytes) -> None:
        self._body = body

    def stream(self, **_: Any) -> Iterator[bytes]:
        yield self._body

    def read(self, *_: Any, **__: Any) -> bytes:
        body, self._body = self._body, b""
        return body


BODIES: Final[Mapping[str, tuple[int, bytes]]] = {
    "denied": (403, b'{"__type": "AccessDeniedException", "message": "not you"}'),
    "odd": (200, b"\xff\0odd"),
    "a portal": (200, b"<html><body>Log in first</body></html>"),
    "HTML": (502, b"<html><body>Bad gateway</body></html>"),
}


def _answer(answers: str) -> Any:
    def send(_self: Any, request: Any) -> AWSResponse:
        if answers == "unreachable":
            raise EndpointConnectionError(endpoint_url=request.url)
        if answers == "slow":
            raise ReadTimeoutError(endpoint_url=request.url)
        status, body = BODIES[answers]
        return AWSResponse(request.url, status, http.client.HTTPMessage(), _Raw(body))  # type: ignore[arg-type]

    return send


@contextmanager
def made_up(answers: str) -> Iterator[None]:
    """Let AWS answer so, let nobody wait or open a page, and end what does not end."""
    slept = 0

    def sleep(_: float) -> None:
        nonlocal slept
        slept += 1
        if slept > 100:
            raise KeyboardInterrupt

    def too_long(*_: object) -> None:
        raise TimeoutError(f"still busy after {SECONDS} s")

    with ExitStack() as stack:
        stack.enter_context(mock.patch("botocore.httpsession.URLLib3Session.send", _answer(answers)))
        stack.enter_context(mock.patch.object(time, "sleep", sleep))
        stack.enter_context(mock.patch.object(webbrowser, "open", return_value=True))
        stack.enter_context(mock.patch.object(boto3, "DEFAULT_SESSION", None))
        before = signal.signal(signal.SIGVTALRM, too_long)
        signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            signal.signal(signal.SIGVTALRM, before)


def play(maker: Maker, chance: Random, number: int) -> Case:
    """Play a case. Raises AssertionError for a traceback, another exit code, silence, or half a file."""
    case = maker.case(chance)
    with made_up(case.answers):
        result = CliRunner().invoke(app, case.words, env=case.environment, input=b"\xff\n")
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        raise AssertionError(f"case {number}, {case}: {type(error).__name__}: {error}") from error
    about = f"case {number}, {case}: exit code {result.exit_code}\n{result.output[-2000:]}"
    assert result.exit_code in EXIT_CODES, about
    assert "Traceback" not in result.output, about
    assert result.exit_code == 0 or result.output.strip(), about
    for file in case.outputs:
        assert result.exit_code < 2 or file.read_bytes() == KEPT, f"{about}\n{file} is half written"
    assert [left.name for left in maker.files["snapshot"].parent.glob(".*.taskgov")] == [], about
    return case
