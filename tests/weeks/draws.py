"""What documents and quotas are drawn from: one function for each thing, each the content of a section or a row.

Alphabets are small, so that weeks shrink well. What a document cannot have in its place (a share beside a fixed promise
of the type, `Count` with the basis `allocatable`) is left out by `fitting`, or refused by the reader of the document.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st

from tests.weeks.machines import GPUS, MEMORIES, P4D, POOL, PROFILES, STATED, TEAMS, UNKNOWN_TYPE, VCPUS, arn_of

Row = dict[str, Any]
Document = dict[str, Any]
Types = Sequence[str]
Draw = st.DrawFn
MOSTLY: Final = st.sampled_from([True, True, True, False])
RARELY: Final = st.sampled_from([False, False, False, True])


@st.composite
def rows_of_type(draw: Draw, instance_type: str) -> list[Row]:
    """Whole instances, parts, or a partition alone or beside parts."""
    number = draw(st.sampled_from([1, 2, 3, 4, 0]))
    gpus, vcpus, memory = GPUS[instance_type], VCPUS[instance_type], MEMORIES[instance_type]
    kinds: list[list[Row]] = [[{"Count": number}]] * 6
    kinds += [[{"VCpu": number * vcpus // 2}], [{"MemoryInGiB": number * memory // 2}]]
    if gpus:
        parts = {"Accelerators": number, "VCpu": draw(st.sampled_from([1, 7.25, vcpus]))}
        kinds += [[{"Accelerators": number}], [parts]]
    if instance_type == P4D:
        partition = {"AcceleratorPartition": {"Type": draw(st.sampled_from(PROFILES)), "Count": number}}
        kinds += [[partition], [{"Accelerators": draw(st.integers(0, 8))}, partition]]
    return [{"InstanceType": instance_type, **amounts} for amounts in draw(st.sampled_from(kinds))]


@st.composite
def rows(draw: Draw, types: Types) -> list[Row]:
    """Rows on most of the types."""
    chosen = [each for each in types if draw(MOSTLY)]
    return [row for instance_type in chosen for row in draw(rows_of_type(instance_type))]


@st.composite
def unit(draw: Draw) -> dict[str, Any]:
    """In what a share or a lease is counted."""
    drawn = draw(st.sampled_from([None, None, None, "accelerators", "vcpu", "memoryInGiB", "acceleratorPartition"]))
    if drawn is None:
        return {}
    profile = {"acceleratorPartitionType": draw(st.sampled_from(PROFILES))}
    return {"unit": drawn, **(profile if drawn == "acceleratorPartition" else {})}


@st.composite
def share(draw: Draw, instance_type: str) -> dict[str, Any]:
    """A share of the usable instances of a type."""
    kind = draw(st.sampled_from(["percent", "percent", "weight"]))
    part = draw(st.sampled_from([50, 25, 33.33, 10])) if kind == "percent" else draw(st.integers(1, 3))
    drawn: dict[str, Any] = {"instanceType": instance_type, kind: part, **draw(unit())}
    floor = draw(st.integers(0, 2))
    if floor:
        drawn["floor"] = floor
    ceiling = draw(st.sampled_from([None, None, 2, 4]))
    if ceiling is not None:
        drawn["ceiling"] = ceiling
    return drawn


@st.composite
def sharing(draw: Draw) -> dict[str, Any]:
    """How a team lends and borrows."""
    strategy = draw(st.sampled_from(["LendAndBorrow", "Lend", "DontLend"]))
    limit = draw(st.sampled_from([None, 0, 100]))
    return {"Strategy": strategy, **({} if limit is None or strategy != "LendAndBorrow" else {"BorrowLimit": limit})}


@st.composite
def config(draw: Draw, types: Types) -> dict[str, Any]:
    """A compute quota's configuration, as a document or a person writes it."""
    drawn: dict[str, Any] = {"ComputeQuotaResources": draw(rows(types))}
    if draw(st.booleans()):
        drawn["ResourceSharingConfig"] = draw(sharing())
    if draw(RARELY):
        drawn["PreemptTeamTasks"] = draw(st.sampled_from(["Never", "LowerPriority"]))
    return drawn


@st.composite
def team(draw: Draw, name: str, types: Types) -> dict[str, Any]:
    """A team's promises: fixed on some types, shares of the others."""
    drawn: dict[str, Any] = {"name": name, "tier": draw(st.integers(1, 2))}
    shared = [each for each in types if draw(RARELY)]
    quota = draw(config([each for each in types if each not in shared]))
    if quota["ComputeQuotaResources"] or draw(st.booleans()):
        drawn["quota"] = quota
    if shared:
        drawn["share"] = [draw(share(each)) for each in shared]
    if draw(st.booleans()):
        drawn["fairShareWeight"] = draw(st.sampled_from([0, 10]))
    return drawn


@st.composite
def lease(draw: Draw, types: Types, now: datetime, teams: Sequence[str] = TEAMS) -> dict[str, Any]:
    """A lease that began, begins now, or is to begin."""
    to, giver = draw(st.sampled_from([(a, b) for a in (POOL, *teams) for b in (POOL, *teams) if a != b]))
    start = now + timedelta(hours=draw(st.sampled_from([0, -1, 6, 48])))
    return {
        "to": to,
        "from": giver,
        "instanceType": draw(st.sampled_from(types)),
        "count": draw(st.integers(1, 2)),
        **draw(unit()),
        **({"partial": True} if draw(RARELY) else {}),
        "start": start.isoformat(),
        "end": (start + timedelta(hours=draw(st.sampled_from([2, 24, 96])))).isoformat(),
        "reason": "a deadline",
    }


@st.composite
def leases(draw: Draw, types: Types, now: datetime) -> list[dict[str, Any]]:
    return draw(st.lists(lease(types, now), min_size=1, max_size=2))


@st.composite
def shared_pool(draw: Draw, types: Types, now: datetime) -> dict[str, Any] | None:
    return draw(st.sampled_from([{"team": POOL}, {"team": POOL}, None, {"native": True}]))


@st.composite
def capacity(draw: Draw, types: Types, now: datetime) -> dict[str, Any]:
    """Which nodes count, and how much of them."""
    drawn: dict[str, Any] = {
        "holdUnhealthyMinutes": draw(st.sampled_from([10, 0, 60])),
        "growAfterMinutes": draw(st.sampled_from([5, 0, 30])),
    }
    odd = draw(st.sampled_from([None, None, "headroomPercent", "overcommitPercent", "basis"]))
    if odd == "basis":
        drawn["basis"] = "allocatable"
    elif odd is not None:
        drawn[odd] = draw(st.sampled_from([10, 50]))
    return drawn


@st.composite
def guardrails(draw: Draw, types: Types, now: datetime) -> dict[str, Any]:
    """Limits of every kind, a few at a time."""
    kinds: Mapping[str, st.SearchStrategy[Any]] = {
        "maxDecreasePercent": st.sampled_from([25, 0, 50]),
        "maxDecreasePerPeriod": st.sampled_from([{"percent": 50, "hours": 24}, {"percent": 25, "hours": 1}]),
        "maxIncreasePercent": st.sampled_from([50, 100]),
        "maxIncreasePerPeriod": st.sampled_from([{"percent": 100, "hours": 24}]),
        "onLimit": st.just("partial"),
        "maxPreemptedGpus": st.sampled_from([0, 2]),
        "minimumQuota": st.sampled_from([{"ant": 1}, {"ant": 2, "bee": 4}]),
        "approveAbove": st.sampled_from([{"changedGpus": 0}, {"changedGpus": 4}, {"preemptedGpus": 0}]),
        "freeze": st.sampled_from([["ant"], ["bee"]]),
        "changeWindows": st.sampled_from(
            [[{"cron": "* * * * *", "minutes": 5}], [{"cron": "0 3 * * *", "minutes": 60}]]
        ),
    }
    chosen = draw(st.lists(st.sampled_from(sorted(kinds)), unique=True, min_size=1, max_size=3))
    drawn = {name: draw(kinds[name]) for name in chosen}
    if "maxDecreasePercent" in drawn and draw(st.booleans()):
        drawn["maxDecreaseInstances"] = 1
    return drawn


@st.composite
def budgets(draw: Draw, types: Types, now: datetime) -> list[dict[str, Any]]:
    names = [draw(st.sampled_from(TEAMS))]
    periods = st.sampled_from(["day", "week", "month"])
    return [{"team": name, "gpuHours": 10, "period": draw(periods), "lowerBorrowLimit": True} for name in names]


@st.composite
def demand(draw: Draw, types: Types, now: datetime) -> dict[str, Any]:
    moves = draw(st.sampled_from([25, 50]))
    return {"enabled": draw(MOSTLY), "windowHours": 24, "maxMovePercent": moves}


@st.composite
def scheduler(draw: Draw, types: Types, now: datetime) -> dict[str, Any] | None:
    """The cluster policy, or nothing about it."""
    classes = [{"Name": "training", "Weight": draw(st.sampled_from([50, 60]))}]
    fair, idle = draw(st.sampled_from([("Enabled", None), ("Disabled", None), ("Enabled", "Enabled")]))
    drawn = {"FairShare": fair, "PriorityClasses": classes, **({} if idle is None else {"IdleResourceSharing": idle})}
    return draw(st.sampled_from([drawn, None]))


@st.composite
def hand_edits(draw: Draw, types: Types, now: datetime) -> str:
    return draw(st.sampled_from(["keep", "adopt", "putRight"]))


@st.composite
def instance_types(draw: Draw, types: Types, now: datetime) -> dict[str, Any]:
    return STATED if UNKNOWN_TYPE in types and draw(st.booleans()) else {}


Section = Callable[[Types, datetime], st.SearchStrategy[Any]]
SECTIONS: Final[Mapping[str, Section]] = {
    "sharedPool": shared_pool,
    "capacity": capacity,
    "guardrails": guardrails,
    "leases": leases,
    "budgets": budgets,
    "demand": demand,
    "schedulerConfig": scheduler,
    "handEdits": hand_edits,
    "instanceTypes": instance_types,
}
"""Every section of a document but `teams`; None leaves a section out."""


@st.composite
def document(draw: Draw, types: Types, now: datetime) -> Document:
    """A first document: the teams, a pool, who writes the quotas, and now and then another section."""
    told: Document = {"apiVersion": "taskgov/v1", "cluster": {"name": "ml-cluster"}}
    told["cluster"]["backend"] = draw(st.sampled_from(["sagemaker", "sagemaker", "sagemaker", "kueue"]))
    told["cluster"]["arn"] = arn_of(told)
    names = [TEAMS[0], *(name for name in TEAMS[1:] if draw(MOSTLY))]
    told["teams"] = [draw(team(name, types)) for name in names]
    for section, content in SECTIONS.items():
        if draw(RARELY):
            told[section] = draw(content(types, now))
    told.setdefault("sharedPool", {"team": POOL})
    return fitting({name: each for name, each in told.items() if each is not None})


def fitting(told: Document) -> Document:
    """Return the document with its fixed promises in parts, where its basis wants them so."""
    if told.get("capacity", {}).get("basis") != "allocatable":
        return told
    return {**told, "teams": [_in_parts(each) for each in told["teams"]]}


def _in_parts(told: dict[str, Any]) -> dict[str, Any]:
    quota = told.get("quota")
    if quota is None:
        return told
    rows_in_parts = [_row_in_parts(row) for row in quota["ComputeQuotaResources"]]
    return {**told, "quota": {**quota, "ComputeQuotaResources": rows_in_parts}}


def _row_in_parts(row: Row) -> Row:
    if "Count" not in row:
        return row
    name = row["InstanceType"]
    part, each = ("Accelerators", GPUS[name]) if GPUS[name] else ("VCpu", VCPUS[name])
    return {"InstanceType": name, part: row["Count"] * each}


@st.composite
def jobs(draw: Draw) -> list[tuple[int, int, int]]:
    """How many pods each job of a team has, which type it is for (by number), and its priority."""
    one = st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(0, 2), st.sampled_from([0, 0, 100]))
    return draw(st.lists(one, min_size=1, max_size=3))
