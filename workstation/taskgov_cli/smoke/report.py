"""The report of a run: what was expected and came, and what AWS does that is inferred today, without private words."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from taskgov_cli.output import jsonable
from taskgov_cli.smoke.redaction import ACCOUNT, GONE, Redaction, identity_words

if TYPE_CHECKING:
    from taskgov_cli.smoke.model import Sandbox
    from taskgov_cli.smoke.runner import Played

SCHEMA: Final = 1
TO_SHARE: Final = (
    "Names, accounts and addresses are replaced. Read it before you share it. Entries with `agrees: false` should be "
    "changed in layers/taskgov/python/taskgov/hyperpod/inferred.py."
)


def report_of(sandbox: Sandbox, played: Played, caller: str, *, embedded: bool) -> dict[str, Any]:
    """Return the report as JSON's own types."""
    observed = sandbox.observed
    data = {
        "schema": SCHEMA,
        "about": TO_SHARE,
        "release": metadata.version("taskgov"),
        "account": "embedded" if embedded else "real",
        "region": sandbox.cluster_arn.split(":")[3],
        "passed": played.passed,
        "interrupted": played.interrupted,
        "steps": played.steps,
        "left": played.left,
        "inferred": observed.inferred,
        "cloudTrailEvents": observed.events,
        "errors": observed.errors,
        "settled": observed.settled,
    }
    return dict(_redaction(sandbox, caller).data(jsonable(data)))


def write(file: Path, report: dict[str, Any]) -> None:
    """Write the report. Raises OSError."""
    file.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")


def _redaction(sandbox: Sandbox, caller: str) -> Redaction:
    words = dict.fromkeys(identity_words(caller), "USER")
    words |= dict.fromkeys(sandbox.retained.values(), GONE)
    words |= {str(folder): "FOLDER" for folder in (Path.home(), Path.cwd()) if folder.name}  # SAM names paths
    words |= {sandbox.cluster: "CLUSTER", sandbox.eks: "EKS_CLUSTER", sandbox.cluster_arn.rpartition("/")[2]: GONE}
    return Redaction.of({**words, sandbox.account: ACCOUNT})
