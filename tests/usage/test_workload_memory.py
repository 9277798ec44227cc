"""The memory of workloads: what a process keeps is what another one reads."""

from datetime import UTC, datetime

from taskgov.snapshot.unreadable import UnreadableObject
from taskgov.usage.workload_facts import facts_of
from taskgov.usage.workload_memory import Key, Record, WorkloadMemory

LISTED = WorkloadMemory("arn:aws:eks:us-east-1:111122223333:cluster/eks", "v1", "1", datetime(2026, 11, 1, tzinfo=UTC))


def _readable(name: str) -> Record:
    metadata = {"name": name, "namespace": "ns", "creationTimestamp": "2026-11-01T00:00:00Z"}
    return facts_of({"metadata": metadata, "spec": {}})


def _unreadable(name: str) -> Record:
    return UnreadableObject("Workload", name, "spec: it is odd", "ns")


def _finished(name: str) -> Record:
    return UnreadableObject("Workload", name, "spec: it is odd", "ns", is_finished=True)


def _in_order(memory: WorkloadMemory) -> list[tuple[Key, Record]]:
    return list(memory.records.items())


def test_a_process_that_reads_the_memory_has_the_same_workloads_in_the_same_order() -> None:
    memory = LISTED.after("2", {("ns", name): _readable(name) for name in "abc"})
    steps = ({"a": _unreadable}, {"b": _readable, "d": _finished}, {"e": _readable}, {"d": _unreadable, "a": _readable})
    for changed in steps:
        memory = memory.after("3", {("ns", name): make(name) for name, make in changed.items()})
        assert _in_order(WorkloadMemory.from_bytes(memory.to_bytes())) == _in_order(memory)
