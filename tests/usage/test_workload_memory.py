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


def _order(memory: WorkloadMemory) -> list[Key]:
    return list(memory.records)


def test_workloads_have_the_same_order_in_a_process_that_read_the_memory_as_in_the_one_that_wrote_it() -> None:
    memory = LISTED.after("2", {("ns", name): _readable(name) for name in "abc"})
    for changed in ({"a": _unreadable}, {"b": _readable, "d": _unreadable}, {"e": _readable}, {"a": _readable}):
        memory = memory.after("3", {("ns", name): make(name) for name, make in changed.items()})
        assert _order(WorkloadMemory.from_bytes(memory.to_bytes())) == _order(memory)
