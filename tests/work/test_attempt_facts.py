"""What the record of work reads of a Workload."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from taskgov.adapters.kubernetes.trimming import trimmed_workload
from taskgov.usage.attempt_facts import facts_with_attempt, nobody
from taskgov.usage.workload_memory import WorkloadMemory, record_of
from taskgov.work.owners import name_of
from taskgov.work.stems import stem_of
from tests.support.memory import NOON

GPU = "nvidia.com/gpu"
SECRET = "hf_secret"
OWNER = "taskgov/submitted-by"


def a_workload(**more: Any) -> dict[str, Any]:
    container = {
        "name": "main",
        "image": SECRET,
        "command": [SECRET],
        "args": [SECRET],
        "env": [{"name": "TOKEN", "value": SECRET}],
        "resources": {"requests": {GPU: "8", "cpu": "4"}},
    }
    template = {
        "metadata": {"annotations": {"note": SECRET}, "labels": {OWNER: "ana"}},
        "spec": {"containers": [container], "volumes": [{"name": SECRET}]},
    }
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "Workload",
        "metadata": {
            "name": "job-train-0042-1234a",
            "namespace": "hyperpod-ns-team-a",
            "uid": "u-1",
            "creationTimestamp": "2026-11-20T12:00:00Z",
            "annotations": {"note": SECRET},
            "ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "name": "train-0042", "uid": "j", "controller": True}
            ],
        },
        "spec": {
            "queueName": "q",
            "maximumExecutionTimeSeconds": 3600,
            "podSets": [{"name": "main", "count": 2, "template": template}],
        },
        **more,
    }


def test_nothing_of_a_job_but_what_is_listed_is_kept() -> None:
    item = trimmed_workload(a_workload(), also=OWNER)
    memory = WorkloadMemory(
        "eks", "v1beta2", "7", NOON, {("ns", "n"): record_of(item, lambda item: name_of(item, OWNER))}
    )
    record = facts_with_attempt(item, nobody)
    assert SECRET not in gzip.decompress(memory.to_bytes()).decode() + repr(record) + json.dumps(item)
    assert record.attempt is not None
    assert (record.attempt.max_seconds, record.attempt.held, record.attempt.owner) == (3600, (("", GPU, 16),), None)
    assert WorkloadMemory.from_bytes(memory.to_bytes()).facts()[0].attempt == memory.facts()[0].attempt


@pytest.mark.parametrize(
    ("place", "found"),
    [
        ({"annotations": {OWNER: "eve"}}, "eve"),
        ({"labels": {OWNER: "eve"}}, "eve"),
        ({}, "ana"),
        ({"labels": {OWNER: ""}}, "ana"),
    ],
)
def test_the_owner_is_named_by_the_workload_else_by_its_pods(place: dict[str, Any], found: str) -> None:
    item = a_workload()
    item["metadata"] |= place
    assert name_of(trimmed_workload(item, also=OWNER), OWNER) == found
    assert OWNER not in trimmed_workload(item)["metadata"].get("annotations", {})


def test_of_an_owner_as_long_as_an_annotation_may_be_the_beginning_is_kept() -> None:
    item = a_workload()
    item["metadata"] |= {"annotations": {OWNER: "eve" + "x" * 2**18}}
    name = name_of(trimmed_workload(item, also=OWNER), OWNER)
    assert (name or "").startswith("evex")
    assert len(name or "") == 253


def test_what_is_held_is_what_it_is_admitted_with() -> None:
    assigned = {
        "name": "main",
        "flavors": {GPU: "ml.g5.12xlarge", "cpu": "ml.g5.12xlarge"},
        "resourceUsage": {GPU: "4"},
    }
    status = {"admission": {"clusterQueue": "q", "podSetAssignments": [assigned]}}
    facts = facts_with_attempt(a_workload(status=status), nobody)
    assert facts.attempt is not None
    assert facts.attempt.held == (("ml.g5.12xlarge", GPU, 4),)


@pytest.mark.parametrize(
    ("name", "stem"),
    [
        ("train", "train"),
        ("train-2026-11-20", "train"),
        ("train-7b", "train-7b"),
        ("eval-run12-v2", "eval"),
        ("job-xk7wq", "job"),
        ("4711", "4711"),
        ("a-1b2c3d4e-1111-2222-3333-444455556666", "a"),
        ("1b2c3d4e-1111-2222-3333-444455556666", "1b2c3d4e"),
        ("sweep-20261101t120000z", "sweep"),
        ("fix-deadbeef1", "fix"),
        ("fix-decade", "fix-decade"),
    ],
)
def test_a_stem_is_what_the_runs_of_a_job_have_in_common(name: str, stem: str) -> None:
    assert stem_of(name) == stem
