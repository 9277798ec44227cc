"""Start a program, know when it answers, and stop it: etcd, the API server, and Kueue's manager on loopback."""

from __future__ import annotations

import os
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

_COLLECT_AT_PERCENT: Final = "300"
"""Of a Go program's living memory; its default of 100 costs processor time for memory that a test machine has."""


@dataclass(frozen=True, slots=True)
class Program:
    """A running program and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def ensure_runs(self) -> None:
        """Fail with the end of its log when it has ended."""
        if self.process.poll() is not None:
            tail = "\n".join(self.log.read_text().splitlines()[-15:])
            raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{tail}")

    def stop(self) -> None:
        """End it where it is, as a machine that goes away does, and wait until it has.

        Asked politely, an API server waits for the watches of its clients, which do not end.
        """
        self.process.kill()
        self.process.wait()


def start(program: Path, folder: Path, arguments: list[str]) -> Program:
    """Start a program with a log `<name>.log` in `folder`. It sees no proxy: everything is on loopback."""
    log = folder / f"{program.name}.log"
    environment = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    environment["GOGC"] = _COLLECT_AT_PERCENT
    with log.open("ab") as output:
        command = [str(program), *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, cwd=folder, env=environment)  # noqa: S603 - programs that we built
    return Program(program.name, process, log)


def free_ports(number: int) -> list[int]:
    """Return ports of loopback that nobody uses."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
