"""Two releases of the stack: the one in the repository, and one made from it that is a little older."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from taskgov_embedded.stack import Stack

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "template.yaml"
CODE = ("functions", "layers", "statemachines")
OLD_QUEUE = """  OldQueue:
    Type: AWS::SQS::Queue
    Properties: {SqsManagedSseEnabled: true}

"""


def older_release(where: Path) -> Path:
    """Write a release with other code, definitions, settings and resources; return its template.

    It has a queue that is gone now, lacks the alarm on stale publishing and a permission, and delays events longer.
    """
    for folder in CODE:
        shutil.copytree(ROOT / folder, where / folder, ignore=shutil.ignore_patterns("__pycache__"))
    _edit(where / "layers/taskgov/python/taskgov/__init__.py", "", '\nRELEASE = "older"\n')
    _edit(where / "statemachines/reconcile.asl.yaml", "Comment: >-\n", "Comment: >-\n  The older definition.\n")
    text = TEMPLATE.read_text()
    text = _without(text, "PublishingStaleAlarm")
    text = _replaced(text, ' "${PublishingStaleAlarm.Arn}",', "")  # the dashboard shows it
    text = _replaced(text, "DelaySeconds: 20", "DelaySeconds: 30")
    text = _replaced(text, "  IntakeQueue:\n", OLD_QUEUE + "  IntakeQueue:\n")
    text = _replaced(text, "                  - scheduler:UpdateSchedule\n", "")
    (where / "template.yaml").write_text(text)
    return where / "template.yaml"


def release_without_execution_key(where: Path) -> Path:
    """Write the release in the form before the state machines' data had a key of the stack; return its template."""
    for folder in CODE:
        shutil.copytree(ROOT / folder, where / folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = _without(TEMPLATE.read_text(), "ExecutionKey")
    for sid in ("EncryptExecutions", "EncryptLogsInDelivery"):
        statement = rf"- (?:&{sid}\n {{16}})?Sid: {sid}\n(?: {{16}}.*\n)+|- \*{sid}\n"
        text, count = re.subn(rf"(?m)^ {{14}}(?:{statement})", "", text)
        assert count == 2, f"{count} roles have {sid}"
    text, count = re.subn(r"(?m)^ {6}EncryptionConfiguration: .*ExecutionKey.*\n", "", text)
    assert (count, "ExecutionKey" in text) == (2, False)
    (where / "template.yaml").write_text(text)
    return where / "template.yaml"


def versions_used(stack: Stack, function: str, since: int = 0) -> list[str]:
    """Return which version of a function took each call since a number of results."""
    return [one.version for one in stack.results[since:] if one.function == function]


def _without(text: str, logical_id: str) -> str:
    removed, count = re.subn(rf"(?m)^  {logical_id}:\n(?:    .*\n|\n)+", "", text)
    assert count == 1, f"the template no longer has {logical_id}"
    return removed


def _replaced(text: str, old: str, new: str) -> str:
    assert old in text, f"the template no longer has {old!r}"
    return text.replace(old, new, 1)


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    path.write_text(_replaced(text, old, new) if old else text + new)
