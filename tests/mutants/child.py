"""Run chosen tests in a copy of the tree: `python -m tests.mutants.child CHOICE.json`, with the copy as working folder.

Exit codes are pytest's; `WRONG_TREE` when the product that was tested is not the copy's.
"""

import builtins
import json
import os
import resource
import signal
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.source import TOUCHED

WRONG_TREE = 70
TIMED_OUT = 71
MEMORY = 3 * 2**30
"""Bytes of address space: a mutant that fills the memory ends before the machine does."""
AT_LEAST = 10.0
TIMES = 10
"""Seconds of processor time that a test may take: so many, and so many times what it takes without a mutant."""
PACKAGE = "taskgov.allocation"


class Chosen:
    """Run the chosen tests in the order given, or one part of all tests; note what each touches and how long."""

    def __init__(self, tests: Mapping[str, float], part: int, parts: int) -> None:
        self._tests = tests
        self._ranks = {test: rank for rank, test in enumerate(tests)}
        self._part, self._parts = part, parts
        self.touched: dict[str, list[str]] = {}
        self.seconds: dict[str, float] = {}

    def pytest_sessionstart(self) -> None:
        """Do not shrink what hypothesis finds: that something fails is all that is asked."""
        from hypothesis import Phase, settings  # not before pytest, which wants to see plugins imported

        phases = (Phase.explicit, Phase.reuse, Phase.generate)
        settings.register_profile("mutants", settings.get_profile("taskgov"), phases=phases)
        settings.load_profile("mutants")

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keep and sort what was chosen, or take one part of everything."""
        if self._ranks:
            items[:] = sorted(
                (item for item in items if item.nodeid in self._ranks), key=lambda item: self._ranks[item.nodeid]
            )
        else:
            items[:] = items[self._part :: self._parts]
        self.touched[""] = sorted(getattr(builtins, TOUCHED))

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Forget what was touched and cached before: a value from a cache hides who needs the function."""
        if self._tests:
            _end_after(AT_LEAST + TIMES * self._tests[item.nodeid])
        getattr(builtins, TOUCHED).clear()
        modules = [module for name, module in sys.modules.items() if name.startswith(PACKAGE)] if self._parts else []
        for value in [value for module in modules for value in vars(module).values()]:
            if hasattr(value, "cache_clear"):
                value.cache_clear()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note what was touched up to the end of each phase, and add up the time."""
        self.touched[report.nodeid] = sorted(getattr(builtins, TOUCHED))
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


def _end_after(seconds: float) -> None:
    """End this process when it takes more processor time from now on. A busy machine is no endless loop."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


def main(choice: dict[str, Any]) -> int:
    """Run the tests of a choice; write what they touched where it says so."""
    with suppress(ValueError, OSError):  # not every system limits it
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    setattr(builtins, TOUCHED, set())
    signal.signal(signal.SIGPROF, lambda *_: os._exit(TIMED_OUT))
    if choice["tests"]:
        _end_after(TIMES * AT_LEAST)  # for what runs on import
    chosen = Chosen(choice["tests"], choice["part"], choice["parts"])
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:cov", "-p", "no:xdist", *choice["paths"]]
    code = int(pytest.main(options, plugins=[chosen]))
    product = sys.modules.get("taskgov")
    if product is not None and Path.cwd() not in Path(product.__file__ or "").parents:
        return WRONG_TREE
    if choice["report"]:
        report = {"touched": chosen.touched, "seconds": chosen.seconds}
        Path(choice["report"]).write_text(json.dumps(report), encoding="utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
