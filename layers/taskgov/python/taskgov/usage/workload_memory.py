"""What is known of a cluster's workloads from one minute to the next: their records, and the version of each.

Records and version belong together: the records are the collection at that version. So of two minutes the one that is
written last, the next one continues from what is true. The document is one line of JSON in gzip, whose checksum finds
damage.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final, Self

from taskgov.json_form import DAMAGED
from taskgov.json_rows import COMPACT, Rows
from taskgov.snapshot.forms import fault_of
from taskgov.snapshot.model import KubernetesObject
from taskgov.snapshot.unreadable import UnreadableObject
from taskgov.usage.attempt_facts import OwnerOf, facts_with_attempt
from taskgov.usage.pods_asked import PodsAsked
from taskgov.usage.workload_facts import AttemptFacts, Preempted, WorkloadFacts

FORM: Final = 3
"""Goes up with every change of a record, or of how it is made of a Workload: an older memory is not read then."""
LISTED_EACH: Final = timedelta(hours=1)
"""However well changes can be followed, all workloads are listed this often."""

Key = tuple[str, str]
"""Namespace and name."""
Record = WorkloadFacts | UnreadableObject
"""What is known of a Workload, or why it cannot be read."""


@dataclass(frozen=True, slots=True)
class WorkloadMemory:
    """The workloads of one EKS cluster at one version."""

    eks_arn: str
    api_version: str
    resource_version: str
    listed_at: datetime
    """When all of them were listed last."""
    records: Mapping[Key, Record] = field(default_factory=dict)
    """Those that can be read first, as in the document."""

    def is_of(self, eks_arn: str, now: datetime) -> bool:
        """Return whether it can be followed from: it is this cluster's, and all workloads were listed lately."""
        return self.eks_arn == eks_arn and timedelta() <= now - self.listed_at < LISTED_EACH

    def after(self, resource_version: str, changed: Mapping[Key, Record | None]) -> Self:
        """Return it with what changed up to a version; None stands for what was deleted."""
        records = {**self.records, **changed}
        there = [(key, record) for key, record in records.items() if record is not None]
        there.sort(key=lambda item: isinstance(item[1], UnreadableObject))
        return replace(self, resource_version=resource_version, records=dict(there))

    def facts(self) -> tuple[WorkloadFacts, ...]:
        """Return what is known of the workloads that can be read."""
        return tuple(record for record in self.records.values() if isinstance(record, WorkloadFacts))

    def unreadable(self) -> tuple[UnreadableObject, ...]:
        """Return the others."""
        return tuple(record for record in self.records.values() if isinstance(record, UnreadableObject))

    def to_bytes(self, rows: Rows[WorkloadFacts] | None = None) -> bytes:
        """Return the document: the same memory gives the same bytes. With `rows`, only new records are converted."""
        head = {
            "form": FORM,
            "eksArn": self.eks_arn,
            "apiVersion": self.api_version,
            "resourceVersion": self.resource_version,
            "listedAt": self.listed_at.isoformat(),
        }
        known = ((key, record) for key, record in self.records.items() if isinstance(record, WorkloadFacts))
        odd = [
            (*key, odd.name, odd.because, odd.namespace, odd.is_finished)
            for key, odd in self.records.items()
            if isinstance(odd, UnreadableObject)
        ]
        members = {"workloads": (rows or rows_of_facts()).to_json(known), "unreadable": _compact(odd)}
        text = _compact(head)[:-1] + "".join(f',"{name}":{member}' for name, member in members.items()) + "}"
        return gzip.compress(text.encode(), compresslevel=1, mtime=0)

    @classmethod
    def from_bytes(cls, stored: bytes) -> Self:
        """Read what `to_bytes` wrote. Raises `ValueError` for anything else, also for another form."""
        try:
            document = json.loads(gzip.decompress(stored))
            if document["form"] != FORM:
                raise ValueError(f"it is of form {document['form']!r} and not {FORM}")
            return cls(
                eks_arn=str(document["eksArn"]),
                api_version=str(document["apiVersion"]),
                resource_version=str(document["resourceVersion"]),
                listed_at=_aware(datetime.fromisoformat(document["listedAt"])),
                records=dict(_records(document)),
            )
        except DAMAGED as error:
            raise ValueError(f"it is not a memory of workloads ({type(error).__name__})") from error


def record_of(item: KubernetesObject, owner_of: OwnerOf) -> Record:
    """Return what is kept of a Workload as the reader gives it."""
    because = fault_of("Workload", item)
    return facts_with_attempt(item, owner_of) if because is None else UnreadableObject.of("Workload", item, because)


def rows_of_facts() -> Rows[WorkloadFacts]:
    """Return the rows of a new document, for `WorkloadMemory.to_bytes`."""
    return Rows(_row)


def _compact(value: Any) -> str:
    return json.dumps(value, separators=COMPACT)


def _row(facts: WorkloadFacts) -> tuple[Any, ...]:
    preempted = facts.preempted
    return (
        facts.namespace,
        facts.name,
        facts.uid,
        facts.queue,
        facts.job,
        facts.kind,
        facts.priority_class,
        facts.priority,
        facts.waiting_since,
        facts.evicted,
        preempted and (preempted.at, preempted.reason, preempted.message, preempted.ran_since),
        facts.past_seconds,
        [(pods.instance_type, pods.number, pods.requests) for pods in facts.asks],
        facts.attempt and astuple(facts.attempt),
    )


def _records(document: Mapping[str, Any]) -> Iterator[tuple[Key, Record]]:
    for *row, preempted, past, asks, attempt in document["workloads"]:
        pods = tuple(
            PodsAsked(kind, count, tuple((resource, amount) for resource, amount in requests))
            for kind, count, requests in asks
        )
        last = Preempted(*preempted) if preempted else None
        facts = WorkloadFacts(*(*row, last, past, pods))._replace(attempt=_attempt(attempt) if attempt else None)
        yield (facts.namespace, facts.name), facts
    for namespace, name, *row in document["unreadable"]:
        yield (namespace, name), UnreadableObject("Workload", *row)


def _attempt(row: list[Any]) -> AttemptFacts:
    facts = AttemptFacts(*row)
    held = tuple((kind, resource, amount) for kind, resource, amount in facts.held)
    return replace(facts, held=held, evictions=tuple((reason, times) for reason, times in facts.evictions))


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment} has no time zone")
    return moment
