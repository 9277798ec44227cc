"""The first of two writes: the lesser of both ends in every resource of the queue, in a form that the API keeps."""

import struct
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.allocation.low_write import low_config, queue_amounts
from taskgov.hyperpod.instance_types import KNOWN_TYPES, InstanceResources
from taskgov.hyperpod.model import ComputeQuotaConfig
from tests.allocation.world import C5, G5, G6, P5, config, row
from tests.hyperpod.requests import check_request

MIG_1G, MIG_7G = "mig-1g.10gb", "mig-7g.80gb"


def mig(profile: str, count: int, **amounts: Any) -> dict[str, Any]:
    return row(P5, AcceleratorPartition={"Type": profile, "Count": count}, **amounts)


def quota_of(*rows: dict[str, Any], **settings: Any) -> ComputeQuotaConfig:
    return ComputeQuotaConfig.model_validate(config(*rows, **settings))


def low(before: ComputeQuotaConfig, after: ComputeQuotaConfig) -> list[dict[str, Any]]:
    found = low_config(before, after, KNOWN_TYPES.get)
    assert found is not None
    rows: list[dict[str, Any]] = found.to_api()["ComputeQuotaResources"]
    return rows


CASES = {
    "whole instances stay whole instances": (
        [row(Count=3), row(P5, Count=1)],
        [row(Count=1), row(P5, Count=3)],
        [row(Count=1), row(P5, Count=1)],
    ),
    "a row that the promise lacks stays at nothing": ([row(Count=2)], [row(P5, Count=1)], [row(Count=0)]),
    "a new row comes with the second write": ([row(Count=2)], [row(Count=1), row(P5, Count=1)], [row(Count=1)]),
    "each resource by itself": (
        [row(P5, Accelerators=2, VCpu=96)],
        [row(P5, Accelerators=4, VCpu=48)],
        # The larger share of both sides brings half of the memory.
        [row(P5, Accelerators=2, VCpu=48.0, MemoryInGiB=1024.0)],
    ),
    "whole instances that become parts are written out": (
        [row(P5, Count=1)],
        [row(P5, Accelerators=4)],
        [row(P5, Accelerators=4, VCpu=96.0, MemoryInGiB=1024.0)],
    ),
    "whole instances with more vCPUs than they bring are written out": (
        [row(P5, Count=2, VCpu=300)],
        [row(P5, Count=1)],
        [row(P5, Accelerators=8, VCpu=192.0, MemoryInGiB=2048.0)],
    ),
    "no partition stays none while its vCPUs fall": (
        [mig(MIG_1G, 0, VCpu=24, MemoryInGiB=256)],
        [mig(MIG_1G, 7, VCpu=12, MemoryInGiB=256)],
        [mig(MIG_1G, 0, VCpu=12.0, MemoryInGiB=256.0)],
    ),
    "partitions that become larger ones are equal in sevenths, and not in the queue": (
        [mig(MIG_1G, 7)],
        [mig(MIG_7G, 1)],
        [mig(MIG_1G, 0, VCpu=24.0, MemoryInGiB=256.0)],
    ),
    "vCPUs and memory of a type add up over its rows": (
        [row(P5, Accelerators=1, VCpu=10, MemoryInGiB=10), mig(MIG_1G, 7, VCpu=20, MemoryInGiB=20)],
        [row(P5, Accelerators=2, VCpu=20, MemoryInGiB=20), mig(MIG_1G, 3, VCpu=10, MemoryInGiB=10)],
        [
            row(P5, Accelerators=1, VCpu=30.0, MemoryInGiB=30.0),
            mig(MIG_1G, 3, VCpu=0.0, MemoryInGiB=0.0),
        ],
    ),
    "a type without accelerators has none": (
        [row(C5, VCpu=4, MemoryInGiB=8)],
        [row(C5, VCpu=5, MemoryInGiB=6)],
        [row(C5, VCpu=4.0, MemoryInGiB=6.0)],
    ),
}


@pytest.mark.parametrize(("before", "after", "wanted"), CASES.values(), ids=CASES.keys())
def test_the_low_write_has_the_lesser_of_both(
    before: list[dict[str, Any]], after: list[dict[str, Any]], wanted: list[dict[str, Any]]
) -> None:
    assert low(quota_of(*before), quota_of(*after)) == wanted


def test_settings_come_with_the_last_write() -> None:
    before = quota_of(row(Count=2), PreemptTeamTasks="Never")
    after = quota_of(row(Count=1), row(P5, Count=1), PreemptTeamTasks="LowerPriority")
    found = low_config(before, after, KNOWN_TYPES.get)
    assert found is not None
    assert found.preempt_team_tasks == before.preempt_team_tasks


def test_parts_of_an_unknown_type_cannot_be_split() -> None:
    unknown = row("ml.q9.large", Accelerators=4)
    swap = quota_of(unknown, row(Count=2)), quota_of(unknown, row(Count=1), row(P5, Count=1))
    assert low(*swap) == [unknown, row(Count=1)]
    changes = quota_of(unknown, row(Count=2)), quota_of(row("ml.q9.large", Accelerators=5), row(Count=1))
    assert low_config(*changes, KNOWN_TYPES.get) is None


def test_with_one_thread_per_core_no_more_is_written_than_capacity_counts() -> None:
    half = KNOWN_TYPES[P5].at_threads(1)
    before, after = quota_of(row(P5, Accelerators=8)), quota_of(row(P5, Accelerators=8, VCpu=150, MemoryInGiB=512))
    found = low_config(before, after, {P5: half}.get)
    assert found is not None
    assert found.compute_quota_resources[0].vcpu == 96


amounts = st.one_of(st.none(), st.integers(0, 300), st.floats(0, 300).map(lambda number: round(number, 3)))


@st.composite
def quotas(draw: st.DrawFn) -> ComputeQuotaConfig:
    rows: list[dict[str, Any]] = []
    for name in draw(st.lists(st.sampled_from([G5, P5, G6, C5]), unique=True, max_size=3)):
        if draw(st.booleans()):
            rows.append(row(name, Count=draw(st.integers(0, 9))))
            continue
        devices = None if name == C5 else draw(st.one_of(st.none(), st.integers(0, 40)))
        parts = {"Accelerators": devices, "VCpu": draw(amounts), "MemoryInGiB": draw(amounts)}
        rows.append(row(name, **{part: number for part, number in parts.items() if number is not None}))
    profiles = draw(st.lists(st.sampled_from([MIG_1G, MIG_7G]), unique=True, max_size=2))
    rows.extend(mig(profile, draw(st.integers(0, 20))) for profile in profiles)
    return quota_of(*rows)


@given(quotas(), quotas())
def test_the_low_write_is_within_both_ends_and_the_api_takes_it_and_returns_it_unchanged(
    before: ComputeQuotaConfig, after: ComputeQuotaConfig
) -> None:
    known: dict[str, InstanceResources] = dict(KNOWN_TYPES)
    found = low_config(before, after, known.get)
    assert found is not None
    ends = [queue_amounts(each, known.get) for each in (before, after)]
    unit = {"memory": 2**30, "cpu": 1000}
    for place in {*ends[0], *ends[1]}:
        least = min(end.get(place, 0) for end in ends)
        written = queue_amounts(found, known.get).get(place, 0)
        # Less than an eighth of a unit is rounded away, and nothing of what is counted in whole numbers.
        assert least - Fraction(unit.get(place[1], 0), 8) - 1 < written <= least
    assert [each.instance_type for each in found.compute_quota_resources] == [
        each.instance_type for each in before.compute_quota_resources
    ]
    for each in found.compute_quota_resources:
        if each not in before.compute_quota_resources:
            for number in (each.vcpu or 0.0, each.memory_in_gib or 0.0):
                assert struct.unpack("f", struct.pack("f", number))[0] == number
    sent = {"ComputeQuotaId": "abcdefghijkl", "TargetVersion": 1, "ComputeQuotaConfig": found.to_api()}
    assert not check_request("UpdateComputeQuota", sent)


def test_rows_that_list_a_type_twice_become_one() -> None:
    """The API refuses a type that is listed twice; what they come to together is kept."""
    twice = quota_of(row(G6, Accelerators=2, VCpu=10), row(G6, Accelerators=1, VCpu=20))
    (only,) = low(twice, quota_of(row(G6, Accelerators=1, VCpu=40, MemoryInGiB=96)))
    assert (only["Accelerators"], only["VCpu"]) == (1, 30.0)
    counted = quota_of(row(G6, Count=2), row(G6, Count=3))
    assert low(counted, quota_of(row(G6, Count=4))) == [row(G6, Count=4)]
