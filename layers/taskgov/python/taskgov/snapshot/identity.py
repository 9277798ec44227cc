"""Whose state are the records of a cluster, and are they the newest? What table, bucket and cluster store of it.

Terraform's state has the same two marks: a lineage, made once, and a serial that rises with each write. The table and
the bucket have one pair each for every cluster. A run raises both when it reads the cluster, before it can write. A
table from a backup is therefore behind the bucket, and a bucket from a backup behind the table. The third mark, the
claim, is a tag on the cluster itself: which stack governs it.

| table | bucket | what it means |
| --- | --- | --- |
| nothing | nothing | the first read |
| nothing | a stamp | the table is empty |
| a stamp | nothing | the bucket is empty; unless the very first read was cut short |
| a lineage | another | the table is foreign |
| a serial | a higher one | the table is older |
| a serial | one lower by more than one | the bucket is older |
| a serial | the same, hours old; quotas changed, and no edit on record explains it | both are older |

Where they agree, and another stack's claim is the older, or this stack has not claimed the cluster since: a new stack.
A read that is cut short leaves the table ahead by one. A write to the bucket that arrives late leaves it ahead by more,
for minutes. Neither is a loss.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final, Self

from pydantic import AwareDatetime

from taskgov.snapshot.kept_forms import StampForm, read_kept

STAMP_KEY: Final = "memory/{}/state.json"
LATE: Final = timedelta(minutes=15)
"""A write to the bucket that is under way longer than this is none: its function has long ended."""
SILENT: Final = timedelta(hours=3)
"""A stack that works reads each cluster at least every hour."""
NAMED: Final = 20
"""Quotas that were taken over and are named in the table's stamp; the records in the snapshot say it of each."""
SHOWN_FOR: Final = timedelta(days=1)
"""How long a loss is reported after everything has been taken over."""
CLAIM: Final = "taskgov:stack:"
"""How the key of a stack's tag on a cluster begins; its lineage follows, and the value is since when."""


class Loss(StrEnum):
    """What was lost if the stored state is not the one that the last run left."""

    TABLE_BEHIND = "table-behind"
    """The table is an older copy than the bucket has seen: restored from a backup."""
    TABLE_EMPTY = "table-empty"
    """The bucket has seen a table, and this one has no record of the cluster."""
    TABLE_FOREIGN = "table-foreign"
    """The table is of another lineage than the one that the bucket has seen."""
    BUCKET_BEHIND = "bucket-behind"
    """The bucket is older than the table has seen: restored, with documents that may be of older versions."""
    BUCKET_EMPTY = "bucket-empty"
    """The table has seen a bucket, and this one has no record of the cluster."""
    BOTH_BEHIND = "both-behind"
    """Table and bucket agree, and both are older than what stands: restored from backups of one time."""
    NEW_STACK = "new-stack"
    """Another stack governs the cluster, or has until now: its writes are not on record here."""

    @property
    def is_of_documents(self) -> bool:
        """Whether the policy document may be of an older version too."""
        return self in {Loss.BUCKET_BEHIND, Loss.BUCKET_EMPTY, Loss.BOTH_BEHIND}

    @property
    def is_of_records(self) -> bool:
        """Whether the table's records of quotas cannot be used."""
        return self not in {Loss.BUCKET_BEHIND, Loss.BUCKET_EMPTY}


@dataclass(frozen=True, slots=True)
class RestoredState:
    """That table or bucket were found restored, lost or foreign, and what was done about it."""

    loss: Loss
    at: AwareDatetime
    because: str
    """One sentence with both lineages or serials in it."""
    policy_version: str | None = None
    """The policy document that was found then: doubtful documents are in doubt until there is another."""
    taken_over: tuple[str, ...] = ()
    """The first quotas, by name, that had no record left: what stood became the record."""
    more_taken_over: int = 0
    """How many others had none left either."""

    def having_taken_over(self, names: Iterable[str]) -> "RestoredState":
        """Return it with the quotas that had no record left, by name."""
        taken_over = sorted(names)
        return replace(self, taken_over=tuple(taken_over[:NAMED]), more_taken_over=len(taken_over[NAMED:]))


@dataclass(frozen=True, slots=True)
class StateStamp:
    """Whose state the records of a cluster are, and which read left them. Table and bucket have one each."""

    lineage: str
    """Made at random when a table first saw the cluster, and the same ever after."""
    serial: int
    """Rises each time a run reads the cluster, before the run can write."""
    at: AwareDatetime
    restored: RestoredState | None = None
    """The last loss, for as long as people should know of it; only the table keeps it."""
    owned: str = ""
    """Digest of the quotas and the cluster policy whose cluster this table has on record; only the table keeps it."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The mark of a stack on a cluster that it governs."""

    lineage: str
    since: AwareDatetime


@dataclass(frozen=True, slots=True)
class BucketStamp:
    """The bucket's half: the stamp, and where the snapshot of that read is, which has a copy of all records."""

    stamp: StateStamp
    snapshot_key: str
    snapshot_sha256: str
    cluster: str | None = None
    """The ARN of the cluster; None in a stamp that an older version wrote."""

    def to_json(self) -> bytes:
        """Return it as canonical JSON."""
        document = {
            "version": 1,
            "lineage": self.stamp.lineage,
            "serial": self.stamp.serial,
            "at": self.stamp.at.isoformat(),
            "snapshot": {"key": self.snapshot_key, "sha256": self.snapshot_sha256},
            "cluster": self.cluster,
        }
        return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()

    @classmethod
    def from_json(cls, text: bytes) -> Self:
        """Read what `to_json` wrote. Raises `ValueError` for anything else."""
        kept = read_kept(StampForm, text, "the stamp")
        stamp = StateStamp(kept.lineage, kept.serial, kept.at)
        return cls(stamp, kept.snapshot.key, kept.snapshot.sha256, kept.cluster)


def loss_of(
    table: StateStamp | None, bucket: StateStamp | None, claims: Iterable[Claim] = ()
) -> tuple[Loss, str] | None:
    """Return what was lost, with one sentence that says how it is known; None when the state is as it was left."""
    marks = list(claims)
    if table is not None and bucket is not None:
        return _between(table, bucket) or _not_governing(table, marks)
    if bucket is not None:
        return Loss.TABLE_EMPTY, f"the table has no state, the bucket has seen {_said(bucket)}"
    if table is not None and table.serial > 1:
        return Loss.BUCKET_EMPTY, f"the bucket has no state, the table has {_said(table)}"
    return _not_governing(table, marks)


def _not_governing(table: StateStamp | None, marks: Sequence[Claim]) -> tuple[Loss, str] | None:
    """Return the loss of a stack that does not govern yet: what another writes until then is not on its records."""
    if marks and (table is None or marks[0].lineage != table.lineage):
        return Loss.NEW_STACK, f"{said_claim(marks[0])} has tagged the cluster"
    restored = None if table is None else table.restored
    if table is None or restored is None or restored.loss is not Loss.NEW_STACK:
        return None
    return None if any(mark.lineage == table.lineage for mark in marks) else (restored.loss, restored.because)


def _between(table: StateStamp, bucket: StateStamp) -> tuple[Loss, str] | None:
    """Compare two stamps."""
    seen = f"the table has {_said(table)}, the bucket has {_said(bucket)}"
    if table.lineage != bucket.lineage:
        return Loss.TABLE_FOREIGN, seen
    if table.serial < bucket.serial:
        return Loss.TABLE_BEHIND, seen
    is_behind = table.serial > bucket.serial + 1 and table.at - bucket.at > LATE
    return (Loss.BUCKET_BEHIND, seen) if is_behind else None


def both_behind(table: StateStamp, changed: Iterable[str], now: datetime) -> tuple[Loss, str] | None:
    """Return the loss of both together; `changed` are quotas that have changed since, for unknown reasons."""
    names = list(changed)
    if not names or now - table.at <= SILENT:
        return None
    because = f"the last snapshot on record is of {table.at:%Y-%m-%d %H:%M} UTC, and {len(names)} quotas have changed"
    return Loss.BOTH_BEHIND, f"{because} since, which no edit on record explains"


def next_stamp(table: StateStamp | None, bucket: StateStamp | None, new_lineage: str, now: datetime) -> StateStamp:
    """Return the stamp of the present read.

    The bucket's lineage continues, because the cluster is tagged with it. The serial follows the bucket's if there is
    one: the table is ahead by one, however often a read is cut short between the two.
    """
    seen = bucket or table
    lineage = new_lineage if seen is None else seen.lineage
    if bucket is None or (table and table.lineage == bucket.lineage and table.serial > bucket.serial + 1):
        serial = 0 if table is None else table.serial
    else:
        serial = bucket.serial
    return StateStamp(lineage, serial + 1, now, owned=table.owned if table else "")


def claims_of(tags: Mapping[str, str]) -> tuple[Claim, ...]:
    """Return the stacks that have tagged a cluster, the one that governs it first: the oldest, ties by lineage.

    A tag whose value cannot be read is the oldest of all: nobody writes until a person has examined it.

    Example:
        >>> found = claims_of({"taskgov:stack:b": "2026-11-20T09:00:00+00:00", "taskgov:stack:a": "2026-11-21"})
        >>> [claim.lineage for claim in found]
        ['b', 'a']

    """
    claims = (Claim(key.removeprefix(CLAIM), _moment(value)) for key, value in tags.items() if key.startswith(CLAIM))
    return tuple(sorted(claims, key=lambda claim: (claim.since, claim.lineage)))


def said_claim(claim: Claim) -> str:
    """Return a claim in a few words."""
    return f"stack {claim.lineage} (since {claim.since:%Y-%m-%d %H:%M} UTC)"


def _said(stamp: StateStamp) -> str:
    return f"lineage {stamp.lineage} at serial {stamp.serial}"


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return datetime.min.replace(tzinfo=UTC)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
