"""What random pods ask for, why they are refused, and how usage decays: the model says what Kueue's own packages say.

The real thing is `tests/cluster/tools/requests`, a program on `pkg/workload` and `pkg/util/admissionfairsharing` of
Kueue 0.19.2; it needs Go and no cluster. `TASKGOV_TEST_REQUESTS` says how many workloads are made (3,000).
"""

from __future__ import annotations

import json
import os
import subprocess
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING, Any, Final

import pytest

from taskgov.quantities import exact, times
from taskgov.scheduling import AdmissionFairSharing, KueueModel, ManagerConfig, ResourceTransformation
from taskgov.scheduling.fair_admission import BILLION, Account, Ledger
from taskgov.scheduling.instants import SECOND
from tests.cluster.binaries import requests_program

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.cluster

HOW_MANY: Final = int(os.environ.get("TASKGOV_TEST_REQUESTS", "3000"))
EFA: Final = "vpc.amazonaws.com/efa"
RESOURCES: Final = ("cpu", "memory", "nvidia.com/gpu", "example.com/a", "example.com/b", EFA, "ephemeral-storage")
OF_PODS: Final = ("cpu", "memory")
OUTPUTS: Final = ("example.com/credit", "example.com/a", "memory", "cpu", "example.com/x")
KEY: Final = ("ns", "q")
LAST_DIGITS: Final = Decimal("1e-12")
"""Go's power and Python's may differ in the last bit."""


class Maker:
    """Random questions."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - not for secrets

    def happens(self, chance: float) -> bool:
        return self.random.random() < chance

    def amounts(self, chance: float, names: Sequence[str] = RESOURCES) -> dict[str, str]:
        return {name: self._amount(name) for name in names if self.happens(chance)}

    def _amount(self, name: str) -> str:
        if name == "cpu":
            return self.random.choice(["0", "100m", "250m", "1", "1.5", "2", "3", "4"])
        if name in {"memory", "ephemeral-storage"}:
            return self.random.choice(["0", "1500", "100M", "512Mi", "1Gi", "2Gi", "5G"])
        return str(self.random.randint(0, 4))

    def container(self, *, sidecar: bool = False) -> dict[str, Any]:
        requests, limits = self.amounts(0.25), self.amounts(0.15)
        if self.happens(0.8):
            limits = {name: requests.get(name, amount) for name, amount in limits.items()}
        return {
            "name": "c",
            "resources": {"requests": requests, "limits": limits},
            **({"restartPolicy": "Always"} if sidecar and self.happens(0.4) else {}),
        }

    def pod(self) -> dict[str, Any]:
        pod: dict[str, Any] = {"containers": [self.container() for _ in range(self.random.randint(1, 2))]}
        if self.happens(0.3):
            pod["initContainers"] = [self.container(sidecar=True) for _ in range(self.random.randint(1, 2))]
        if self.happens(0.3):
            pod["runtimeClassName"] = self.random.choice(["r1", "r2", "unknown"])
        if self.happens(0.15):
            pod["overhead"] = self.amounts(0.3, OF_PODS)
        if self.happens(0.15):
            pod["resources"] = {"requests": self.amounts(0.6, OF_PODS), "limits": self.amounts(0.2, OF_PODS)}
        return pod

    def limit_range(self, number: int) -> dict[str, Any]:
        kinds = ["Container", "Container", "Pod", "PersistentVolumeClaim"]
        fields = ("max", "min", "default", "defaultRequest")
        limits = [
            {"type": kind, **{field: self.amounts(0.25) for field in fields if self.happens(0.3)}}
            for kind in self.random.sample(kinds, self.random.randint(1, 2))
        ]
        return {"kind": "LimitRange", "metadata": {"name": f"l{number}", "namespace": "ns"}, "spec": {"limits": limits}}

    def transformation(self, name: str) -> dict[str, Any]:
        factors = ["1", "2", "-1", "-2", "500m", "3m", "1000", "5Gi"]
        outputs = self.random.sample(OUTPUTS, self.random.randint(0, 2))
        return {
            "input": name,
            "strategy": self.random.choice(["Retain", "Replace"]),
            "outputs": {output: self.random.choice(factors) for output in outputs},
            "multiplyBy": self.random.choice(RESOURCES) if self.happens(0.3) else "",
        }

    def question(self) -> dict[str, Any]:
        pod_sets = [
            {"name": f"p{number}", "count": self.random.randint(1, 3), "template": {"spec": self.pod()}}
            for number in range(self.random.randint(1, 2))
        ]
        classes = [{"kind": "RuntimeClass", "metadata": {"name": name}, "handler": "h"} for name in ("r1", "r2")]
        ranges = range(self.random.randint(0, 2)) if self.happens(0.6) else ()
        return {
            "workload": {
                "kind": "Workload",
                "metadata": {"name": "w", "namespace": "ns"},
                "spec": {"queueName": "q", "podSets": pod_sets},
            },
            "limitRanges": [self.limit_range(number) for number in ranges],
            "runtimeClasses": [c | {"overhead": {"podFixed": self.amounts(0.5, OF_PODS)}} for c in classes],
            "transformations": [
                self.transformation(name) for name in self.random.sample(RESOURCES, self.random.randint(0, 3))
            ],
            "excluded": self.random.sample(["vpc.", "example.com/a", "nvidia"], self.random.randint(0, 2)),
            "before": self.amounts(0.5),
            "used": self.amounts(0.5),
            "elapsed": self.random.choice([1, 60, 300, 86400]),
            "half": self.random.choice([10, 300, 604800]),
            "weight": self.random.choice([0.5, 1, 3]),
            "weights": {name: self.random.choice([0, 0.5, 2]) for name in self.random.sample(RESOURCES, 2)},
        }


def billionths(quantities: dict[str, str]) -> dict[str, int]:
    return {name: int(exact(quantity) * BILLION) for name, quantity in quantities.items()}


def modelled(question: dict[str, Any]) -> tuple[list[dict[str, int]], str, dict[str, int], float]:
    """What the model answers."""
    rules = tuple(
        ResourceTransformation(rule["input"], rule["outputs"], rule["strategy"], rule["multiplyBy"])
        for rule in question["transformations"]
    )
    excluded = tuple(question["excluded"])
    world = KueueModel(ManagerConfig(resource_transformations=rules, resources_exclude_prefixes=excluded))
    world.load([*question["limitRanges"], *question["runtimeClasses"]])
    workload = world.read(question["workload"])
    requests = [{name: times(amount, pods.count) for name, amount in pods.requests} for pods in workload.pod_sets]
    ledger = Ledger(AdmissionFairSharing(question["half"], question["elapsed"], question["weights"]))
    ledger.accounts[KEY] = Account(billionths(question["before"]), 0)
    ledger.sample(KEY, billionths(question["used"]), question["elapsed"] * SECOND)
    return requests, workload.refusal, ledger.accounts[KEY].consumed, ledger.usage(KEY, question["weight"])


def test_requests_refusals_and_usage_are_kueues(tmp_path: Path) -> None:
    maker = Maker(seed=19)
    questions = [maker.question() for _ in range(HOW_MANY)]
    text = "".join(f"{json.dumps(question)}\n" for question in questions)
    program = requests_program(tmp_path)
    done = subprocess.run([program], input=text, text=True, stdout=subprocess.PIPE, check=True)  # noqa: S603 - ours
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == HOW_MANY
    for question, answer in zip(questions, answers, strict=True):
        requests, refusal, consumed, usage = modelled(question)
        assert (requests, refusal) == (answer["requests"], answer["refusal"]), json.dumps(question)
        decayed = {name: Decimal(amount) * BILLION for name, amount in answer["decayed"].items()}
        assert consumed.keys() == decayed.keys()
        assert all(abs(consumed[name] - amount) <= 1 + amount * LAST_DIGITS for name, amount in decayed.items())
        assert usage == pytest.approx(answer["usage"], rel=1e-11)
    assert sum(bool(answer["refusal"]) for answer in answers) > HOW_MANY / 20
