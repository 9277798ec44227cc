"""The clusters and the document of which samples are damaged."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from taskgov.services.advise_quotas import AdviseQuotas
from taskgov.services.audit_cluster import AuditCluster
from taskgov.services.take_snapshot import TakeSnapshot
from tests.support.clusters import GPU, GovernedCluster
from tests.support.memory import RecordingFailures, RecordingMeter, RecordingNotices

ROOT: Final = Path(__file__).parents[2]
EVENTS: Final = {path.stem: json.loads(path.read_text()) for path in sorted((ROOT / "events").glob("*.json"))}
DOCUMENT: Final = yaml.safe_load((ROOT / "events" / "local" / "policy.yaml").read_text())
RICH: Final[Mapping[str, Any]] = {
    **DOCUMENT,
    "leases": [
        {
            "to": "team-a",
            "from": "team-b",
            "instanceType": "ml.g5.8xlarge",
            "count": 1,
            "start": "2026-11-20T09:00Z",
            "end": "2026-11-21T09:00Z",
            "reason": "a demo",
        }
    ],
    "budgets": [{"team": "team-a", "gpuHours": 100}],
    "instanceTypes": {"ml.x9.large": {"vcpu": 2, "memoryGiB": 4, "gpu": 1}},
    "guardrails": {
        "maxDecreasePercent": 25,
        "minimumQuota": {"team-a": 1},
        "changeWindows": [{"cron": "0 9 * * mon-fri", "minutes": 480, "timeZone": "Europe/Berlin"}],
    },
    "audit": {"mute": [{"finding": "idle-*", "reason": "known", "until": "2026-12-01T00:00Z"}]},
}


def governed() -> GovernedCluster:
    cluster = GovernedCluster().with_fair_share().with_nodes(2)
    return cluster.with_team("team-a", used={GPU: "6"}).with_team("team-b", used={GPU: "1"})


def busy() -> GovernedCluster:
    cluster = governed().with_nodes(2).with_waiting("waits", "team-a", gpus=4)
    return cluster.with_preempted("was-preempted", "team-b", by="team-a", gpus=2)


def audit_of(cluster: GovernedCluster, take: TakeSnapshot) -> AuditCluster:
    advise = AdviseQuotas(cluster.documents, RecordingFailures(), lambda: 0.0)
    return AuditCluster(take, cluster.documents, cluster.state, RecordingNotices(), _Topics(), RecordingMeter(), advise)


class _Topics:
    begin_with = "arn:aws:sns:us-east-1:111122223333:taskgov-team-"

    def send(self, topic_arn: str, subject: str, text: str) -> None:
        """Take it."""

    def send_chat(self, topic_arn: str, message: Mapping[str, Any]) -> None:
        """Take it."""
