"""Let one process look like several: each function has its own environment, output, modules and default boto3 session.

`Invocation` is what a piece of code runs in; a context variable says which one, so that `os.environ`, the output and
`boto3.client` answer each function with its own. Threads that a handler starts take it along.
"""

from __future__ import annotations

import contextlib
import contextvars
import io
import os
import sys
import threading
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import boto3

from taskgov_embedded.aws_api.clients import new_session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path
    from types import ModuleType

    from taskgov_embedded.aws_api.patches import Patches


@dataclass(slots=True)
class Sandbox:
    """What stays between two invocations of a warm function: environment, modules, session."""

    environment: dict[str, str]
    import_path: tuple[Path, ...]
    shared: tuple[str, ...] = ()
    """Packages that are taken from the process as they are: pure code, without state of a function."""
    modules: dict[str, ModuleType] = field(default_factory=dict)
    session: boto3.Session | None = None
    own_names: frozenset[str] | None = None
    is_own: dict[str, bool] = field(default_factory=dict)
    """Module -> whether it is the sandbox's own; kept because every invocation checks all imported modules."""


@dataclass(slots=True)
class Invocation:
    """One run of code in a sandbox, with what it prints."""

    sandbox: Sandbox
    output: io.StringIO = field(default_factory=io.StringIO)
    inside: bool = False
    hidden: dict[str, ModuleType] = field(default_factory=dict)
    path_before: list[str] = field(default_factory=list)
    streams_before: tuple[Any, Any] = (None, None)


_current: contextvars.ContextVar[Invocation | None] = contextvars.ContextVar("invocation", default=None)
_innermost: contextvars.ContextVar[Invocation | None] = contextvars.ContextVar("innermost", default=None)
"""The invocation whose modules are in place: the same, except while the account works for the function."""


def current() -> Invocation | None:
    """Return the invocation that the calling code belongs to."""
    return _current.get()


@contextlib.contextmanager
def running(invocation: Invocation | None) -> Iterator[None]:
    """Run the body in an invocation; with None, outside of any."""
    token = _current.set(invocation)
    try:
        yield
    finally:
        _current.reset(token)


class EnvironmentOfCaller(MutableMapping[str, str]):
    """`os.environ` as the calling code sees it: its function's variables and no others, or the process's own."""

    def __init__(self, own: MutableMapping[str, str]) -> None:
        self.own = own

    def _mapping(self) -> MutableMapping[str, str]:
        invocation = current()
        return self.own if invocation is None else invocation.sandbox.environment

    def __getitem__(self, key: str) -> str:
        return self._mapping()[key]

    def __setitem__(self, key: str, value: str) -> None:
        self._mapping()[key] = value

    def __delitem__(self, key: str) -> None:
        del self._mapping()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mapping())

    def __len__(self) -> int:
        return len(self._mapping())

    def copy(self) -> dict[str, str]:
        """Return the variables as a plain dictionary, as `os.environ.copy()` does."""
        return dict(self._mapping())


class OutputOfCaller(io.TextIOBase):
    """`sys.stdout` and `sys.stderr` of functions: loggers keep it, and it writes to the invocation that they log in."""

    def write(self, text: str) -> int:
        """Write to the invocation's output; outside of one there is nobody to read it."""
        invocation = current()
        return len(text) if invocation is None else invocation.output.write(text)

    def writable(self) -> bool:
        """Say yes."""
        return True


_OUTPUT = OutputOfCaller()


def install(patches: Patches) -> None:
    """Let the code of a function see a process of its own."""
    patches.replace(os, "environ", EnvironmentOfCaller(os.environ), "each function has variables of its own")
    own_session = boto3._get_default_session  # noqa: SLF001 boto3 has no other way to a session per function
    patches.replace(
        boto3,
        "_get_default_session",
        lambda: _session_of_caller(own_session),
        "each function has credentials, and so a default session, of its own",
    )
    own_start = threading.Thread.start
    patches.replace(
        threading.Thread,
        "start",
        lambda thread: _start_in_context(thread, own_start),
        "a thread that a handler starts belongs to its invocation",
    )


def _session_of_caller(own: Callable[[], boto3.Session]) -> boto3.Session:
    invocation = current()
    if invocation is None:
        return own()
    if invocation.sandbox.session is None:
        invocation.sandbox.session = new_session()
    return invocation.sandbox.session


def _start_in_context(thread: threading.Thread, own_start: Callable[[threading.Thread], None]) -> None:
    """Start a thread of a handler in the handler's context, which Python does not do by itself."""
    if current() is not None:
        context, run = contextvars.copy_context(), thread.run
        thread.run = lambda: context.run(run)  # type: ignore[method-assign]
    own_start(thread)


@contextlib.contextmanager
def entered(sandbox: Sandbox) -> Iterator[Invocation]:
    """Run the body as an invocation in the sandbox: its modules, environment and output are the process's meanwhile."""
    invocation = Invocation(sandbox)
    with suspended(), running(invocation):
        token = _innermost.set(invocation)
        _swap_in(invocation)
        try:
            yield invocation
        finally:
            _swap_out(invocation)
            _innermost.reset(token)


@contextlib.contextmanager
def suspended() -> Iterator[None]:
    """Take the caller's invocation out of the process while another thread, or another function, has its turn."""
    invocation = _innermost.get()
    if invocation is None or not invocation.inside:
        yield
        return
    _swap_out(invocation)
    try:
        yield
    finally:
        _swap_in(invocation)


def _swap_in(invocation: Invocation) -> None:
    sandbox = invocation.sandbox
    invocation.path_before = list(sys.path)
    invocation.hidden = _take_out(_own_modules(sandbox))
    invocation.streams_before = (sys.stdout, sys.stderr)
    sys.path[:0] = [str(directory) for directory in sandbox.import_path]
    sys.stdout = sys.stderr = _OUTPUT
    _put_in(sandbox.modules)
    invocation.inside = True


def _swap_out(invocation: Invocation) -> None:
    invocation.inside = False
    invocation.sandbox.modules = _take_out(_own_modules(invocation.sandbox))
    _put_in(invocation.hidden)
    sys.path[:] = invocation.path_before
    sys.stdout, sys.stderr = invocation.streams_before


def _own_modules(sandbox: Sandbox) -> list[str]:
    """Return what is imported under a name that the sandbox's directories define, except what is shared."""
    if sandbox.own_names is None:
        sandbox.own_names = frozenset(
            entry.stem for directory in sandbox.import_path if directory.is_dir() for entry in directory.iterdir()
        )
    own, known = sandbox.own_names, sandbox.is_own
    imported = list(sys.modules)  # a module may come while we look
    for name in imported:
        if name not in known:
            known[name] = name.split(".")[0] in own and not _is_shared(name, sandbox.shared)
    return [name for name in imported if known[name]]


def _is_shared(name: str, shared: Iterable[str]) -> bool:
    """Return whether a module is of a shared package, or is a package that holds one.

    >>> [_is_shared(name, ["taskgov.hyperpod"]) for name in ("taskgov", "taskgov.hyperpod.names", "taskgov.config")]
    [True, True, False]
    """
    return any(
        name == package or name.startswith(f"{package}.") or package.startswith(f"{name}.") for package in shared
    )


def _take_out(names: Iterable[str]) -> dict[str, ModuleType]:
    taken = {name: sys.modules.pop(name) for name in list(names)}
    for name, module in taken.items():
        parent, _, child = name.rpartition(".")
        holder = sys.modules.get(parent)
        if holder is not None and getattr(holder, child, None) is module:
            # `from package import child` reads the attribute before it reads sys.modules.
            delattr(holder, child)
    return taken


def _put_in(modules: dict[str, ModuleType]) -> None:
    sys.modules.update(modules)
    for name, module in modules.items():
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and parent not in modules:
            setattr(sys.modules[parent], child, module)


@contextlib.contextmanager
def variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """Set these variables of the process's environment meanwhile, and remove those whose value is None."""
    before = {name: os.environ.get(name) for name in values}
    _set_variables(values)
    try:
        yield
    finally:
        _set_variables(before)


def _set_variables(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


NO_FILES: Final = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
"""Variables under which the AWS SDK reads no profile, endpoint or key from a person's home directory."""


def settings_of_person() -> dict[str, str | None]:
    """Return what hides a person's AWS settings from the SDK: endpoint, profile, keys and files of the environment."""
    return {name: None for name in os.environ if name.startswith("AWS_")} | NO_FILES
