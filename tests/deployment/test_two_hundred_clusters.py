"""Two hundred clusters in an account: each has its own measurement, run and audit, and one that hangs holds up no
other.

The stack is real but for what is behind the fan-out: a measurement takes some seconds, and runs and audits are only
started.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.services.metric_catalogue import ALL_CLUSTERS
from taskgov_embedded.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from taskgov_embedded.aws_api.aws_requests import Call

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[2]
COUNT, PAGE = 200, 100
NAMES = [f"cluster-{number:03}" for number in range(COUNT)]
HANGS, RAISES = NAMES[7], NAMES[8]
LOOK_SECONDS, CUT_SECONDS = 3, 120


@dataclass
class Account:
    """What two hundred clusters are asked, and when."""

    stack: Stack
    looks: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    """Of which cluster, from when to when."""
    started: list[tuple[str, str, datetime]] = field(default_factory=list)
    """Name of the machine, name of the cluster, and when its work begins."""

    def __post_init__(self) -> None:
        requests, place = self.stack.account.requests, self.stack.place
        self.arns = {name: place.arn("sagemaker", f"cluster/{name[-3:]:0>12}") for name in NAMES}
        self.names = {arn: name for name, arn in self.arns.items()}
        self._machines = {self.stack.physical(name): name for name in ("ReconcileStateMachine", "AuditStateMachine")}
        self._start = requests._answers["stepfunctions", "StartExecution"]
        requests.answer("sagemaker", "ListClusters", self._list)
        requests.answer("sagemaker", "DescribeCluster", self._describe)
        requests.answer("lambda", "Invoke", self._look)
        requests.answer("stepfunctions", "StartExecution", self._begin)

    def _list(self, call: Call) -> Mapping[str, Any]:
        start = int(call.params.get("NextToken", 0))
        more = {"NextToken": str(start + PAGE)} if start + PAGE < COUNT else {}
        return {"ClusterSummaries": [self._summary(name) for name in NAMES[start : start + PAGE]]} | more

    def _describe(self, call: Call) -> Mapping[str, Any]:
        return self._summary(self.names[call.params["ClusterName"]]) | {"InstanceGroups": []}

    def _summary(self, name: str) -> dict[str, Any]:
        about = {"ClusterName": name, "ClusterArn": self.arns[name], "ClusterStatus": "InService"}
        return about | {"CreationTime": self.stack.clock.now}

    def _look(self, call: Call) -> Mapping[str, Any]:
        began = self.stack.clock.now
        name = self.names[json.loads(call.params["Payload"])["clusterArn"]]
        time.sleep(CUT_SECONDS if name == HANGS else LOOK_SECONDS)
        self.looks.append((name, began, self.stack.clock.now))
        if name in {HANGS, RAISES}:
            kind = "Sandbox.Timedout" if name == HANGS else "KeyError"
            return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": _json({"errorType": kind})}
        return {"StatusCode": 200, "Payload": _json({"published": 1})}

    def _begin(self, call: Call) -> Mapping[str, Any] | None:
        machine = self._machines.get(call.params["stateMachineArn"])
        if machine is None:
            return self._start(call)
        given = json.loads(call.params["input"])
        begins = self.stack.clock.now.timestamp() + given.get("after", 0)
        at = self.stack.clock.now.fromtimestamp(begins, self.stack.clock.now.tzinfo)
        self.started.append((machine, self.names[given["clusterArn"]], at))
        return {"executionArn": call.params["stateMachineArn"], "startDate": self.stack.clock.now}

    def counted(self, metric: str) -> Counter[str]:
        """Return how often the fan-out counted a metric, by cluster."""
        put = [call.params for call in self.stack.calls if call.operation == "PutMetricData"]
        data = [datum for params in put for datum in params["MetricData"] if datum["MetricName"] == metric]
        return Counter(datum["Dimensions"][0]["Value"] for datum in data)


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with Stack(ROOT / "template.yaml", {"ClustersWithoutDocument": "*"}) as stack:
        yield Account(stack)


def most_at_once(spans: list[tuple[str, datetime, datetime]]) -> int:
    return max(sum(began <= moment < ended for _, began, ended in spans) for _, moment, _ in spans)


def test_a_cluster_that_hangs_is_cut_by_its_own_time_and_holds_up_no_other(account: Account) -> None:
    began = account.stack.clock.now
    for _ in range(2):  # in the second minute the one that hangs still hangs from the first
        account.stack.fire("PublishUsageSchedule")
        account.stack.advance(60, schedules=[])
    account.stack.advance(120, schedules=[])
    others = [look for look in account.looks if look[0] != HANGS]
    assert Counter(name for name, *_ in account.looks) == dict.fromkeys(NAMES, 2)
    assert all(0 <= (start - began).total_seconds() % 60 <= 45 for _, start, _ in others)
    assert max((end - began).total_seconds() for _, _, end in others) < 110
    starts = Counter(start.replace(microsecond=0) for _, start, _ in account.looks)
    assert max(starts.values()) <= 5, "an interval lies between them, not only the number that runs at once"
    assert 5 <= most_at_once(account.looks) <= 21
    assert account.counted("ClusterUnreadable") == {HANGS: 2, RAISES: 2, ALL_CLUSTERS: 4}
    told = [moment.what for moment in account.stack.timeline.of("execution") if "FanOut" in moment.what]
    assert [what.partition(" ")[2] for what in told] == ["started", "started", "SUCCEEDED", "SUCCEEDED"]


def test_a_resync_starts_a_run_for_each_cluster_and_one_at_a_time(account: Account) -> None:
    began = account.stack.clock.now
    account.stack.fire("ResyncAllSchedule")
    account.stack.advance(700, schedules=[])
    runs = [(name, at) for machine, name, at in account.started if machine == "ReconcileStateMachine"]
    assert sorted(name for name, _ in runs) == NAMES
    assert max(Counter(at.replace(microsecond=0) for _, at in runs).values()) <= 2
    assert 590 < (max(at for _, at in runs) - began).total_seconds() < 630


def test_each_cluster_has_an_audit_of_its_own_and_a_second_delivery_asks_for_none(account: Account) -> None:
    for _ in range(2):
        account.stack.fire("AuditAllSchedule")
    account.stack.run_until_quiet()
    calls = [
        call.params for call in account.stack.calls if "AuditStateMachine" in call.params.get("stateMachineArn", "")
    ]
    audits = [at for machine, _, at in account.started if machine == "AuditStateMachine"]
    assert len({call["name"] for call in calls}) == COUNT
    assert len(calls) == 2 * COUNT
    assert set(Counter(audits).values()) == {2}, "a name that comes again starts nothing in Step Functions"
    assert (max(audits) - min(audits)).total_seconds() == 6 * (COUNT - 1)


def test_nothing_was_denied(account: Account) -> None:
    assert account.stack.timeline.of("denied") == []
