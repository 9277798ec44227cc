"""Which teams have metric series of their own, where there are more series than a cluster may have."""

import gzip
from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.adapters.metrics import EmbeddedMetrics
from taskgov.estimates.kept import ALL_TEAMS
from taskgov.ports import Measurement
from taskgov.services import metric_catalogue as metric
from taskgov.services import series_rule
from taskgov.services.metric_catalogue import METRICS
from taskgov.services.series_cap import DEFAULT_LIMIT
from taskgov.services.series_memory import SeriesMemory
from taskgov.services.series_rule import FIXED, OTHER, sorted_out
from tests.support.memory import NOON
from tests.support.metric_page import metric_count

GPU = "nvidia.com/gpu"
PER_TYPE = (metric.QUOTA_GUARANTEED, metric.QUOTA_USED, metric.BORROWED, metric.LENT, metric.IDLE, metric.OVER_QUOTA)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def bounded(
    measured: Iterable[Measurement], before: SeriesMemory | None, limit: int, now: datetime
) -> tuple[list[Measurement], SeriesMemory]:
    return series_rule.bounded(sorted_out(measured), before, limit, now)


def fits_in_any_case(measured: Iterable[Measurement], limit: int) -> bool:
    return series_rule.fits_in_any_case(sorted_out(measured), limit)


def of_team(
    team: str, *, used: int = 0, waiting: int = 0, types: int = 1, cpu: int = 0, limited: bool = True
) -> list[Measurement]:
    """Return what one team has: nine values for each type, and three."""
    values = []
    for number in range(types):
        place = (team, f"type-{number}", GPU)
        values += [one.of(used, *place) for one in PER_TYPE if one is not metric.QUOTA_USED]
        values += [metric.QUOTA_USED.of(used, *place, QuotaUsed_cpu=cpu)]
        values += [metric.BORROW_LIMIT_UTILIZATION.of(50, *place)] if limited else []
        values += [metric.FAIR_SHARE_ENTITLEMENT.of(1, *place)]
        values += [metric.FAIR_SHARE_DEVIATION.of(used - 1, *place, infiniteShare=used > 1)]
    return [
        *values,
        metric.PENDING_WORKLOADS.of(waiting, team),
        metric.PENDING_GPUS.of(8 * waiting, team),
        metric.OLDEST_PENDING_SECONDS.of(60 * waiting, team),
    ]


def of_cluster(types: int = 1) -> list[Measurement]:
    values = [metric.TEAMS_STARVED.of(0, teams=""), metric.NODES_LOST.of(0)]
    for number in range(types):
        per_type = (metric.CAPACITY_HEALTHY, metric.CAPACITY_UNHEALTHY, metric.OVERCOMMIT)
        values += [one.of(8, f"type-{number}", GPU) for one in per_type]
    return values


def preempted(team: str, by: str, reason: str = "InClusterQueue", times: int = 1) -> list[Measurement]:
    return [
        metric.PREEMPTIONS.of(times, team, reason, by),
        metric.PREEMPTED_GPU_SECONDS.of(60 * times, team, reason, by),
    ]


def series(published: Iterable[Measurement]) -> set[tuple[str, ...]]:
    return {(one.name, *one.dimensions.values()) for one in published if one.dimensions}


def own_teams(published: Iterable[Measurement]) -> set[str]:
    return {one.dimensions["Team"] for one in published if one.name == "PendingWorkloads"} - {OTHER}


def coverage(teams: Iterable[str]) -> list[Measurement]:
    return [metric.START_ESTIMATE_COVERAGE.of(50, team, quantile) for team in teams for quantile in ("P50", "P90")]


def names(count: int) -> list[str]:
    return [f"team-{number:04}" for number in range(count)]


def a_look(count: int, busy: Iterable[str] = (), types: int = 1) -> list[Measurement]:
    busy = set(busy)
    teams = (of_team(team, used=2 * (team in busy), types=types) for team in names(count))
    return [*of_cluster(types), *(value for one in teams for value in one)]


ROOM_OF_OTHER = 8 + 3 + 2
"""One type: all metrics of a quota but the utilization; what waits; preemptions."""


def limit_for(teams: int, types: int = 1) -> int:
    """The limit that is just enough."""
    return FIXED + 3 * types + (9 * types + 3) * teams + ROOM_OF_OTHER


def test_series_are_counted_exactly() -> None:
    estimates = coverage([ALL_TEAMS])
    assert metric_count(teams=0, types=0, quotas=0) == FIXED + len(estimates)
    estimates += coverage(names(40))
    _, memory = bounded([*a_look(40), *estimates], None, 10**6, NOON)
    assert memory.wanted == metric_count(teams=40, types=1, quotas=40) + ROOM_OF_OTHER
    assert memory.wanted == limit_for(40) + len(estimates)


def test_a_cluster_that_fits_is_published_as_it_is() -> None:
    look = a_look(40)
    published, memory = bounded(look, None, limit_for(40), NOON)
    assert sorted(map(repr, published)) == sorted(map(repr, look))
    assert memory.cut == 0


def test_one_series_too_many_puts_teams_together() -> None:
    published, memory = bounded(a_look(40), None, limit_for(40) - 1, NOON)
    assert memory.cut > 0
    assert memory.limit < memory.wanted == limit_for(40)
    assert len(own_teams(published)) == 40 - memory.cut


def test_teams_at_work_come_first_then_names() -> None:
    busy = {"team-0007", "team-0039"}
    published, _ = bounded(a_look(40, busy), None, limit_for(10), NOON)
    own = own_teams(published)
    assert own == {*busy, *names(len(own) - 2)}
    assert len(own) >= 8  # a tenth of ten teams, and of what is fixed, stays free


@pytest.mark.parametrize(
    "values",
    [of_team("team-0039", waiting=1), of_team("team-0039", cpu=3), preempted("team-0039", "team-0001")],
    ids=["waits", "uses cpu only", "was preempted"],
)
def test_a_team_that_waits_uses_cpu_or_was_preempted_is_at_work(values: list[Measurement]) -> None:
    kept = {(one.name, *one.dimensions.values()) for one in values}
    look = [one for one in a_look(40) if (one.name, *one.dimensions.values()) not in kept]
    published, _ = bounded([*look, *values], None, limit_for(10), NOON)
    assert "team-0039" in own_teams(published)


def test_the_others_are_one_team_with_sums_maxima_and_no_ratio() -> None:
    look = [*of_cluster(), *of_team("a", used=8), *of_team("b", used=4), *of_team("c", used=3, waiting=2, cpu=7)]
    published, memory = bounded([*look, *of_team("d", waiting=5, cpu=1)], None, FIXED + 3 + 12 + ROOM_OF_OTHER, NOON)
    assert memory.own == ("a",)
    other = {one.name: one for one in published if one.dimensions.get("Team") == OTHER}
    assert {name: one.value for name, one in other.items()} == {
        **{one.name: 7 for one in PER_TYPE},
        "FairShareEntitlement": 3,
        "FairShareDeviation": 4,
        "PendingWorkloads": 7,
        "PendingGpus": 56,
        "OldestPendingSeconds": 300,
    }
    assert other["QuotaUsed"].properties == {"QuotaUsed_cpu": 8}
    assert other["FairShareDeviation"].properties == {}  # of several teams no share is infinite


def test_nobody_comes_and_goes_within_an_hour() -> None:
    """Teams take turns at work, more of them than fit; who has series of their own stays the same."""
    memory, seen = None, []
    for minute in range(60):
        busy = [f"team-{(minute * 7 + step) % 100:04}" for step in range(20)]
        published, memory = bounded(a_look(100, busy), memory, limit_for(30), NOON + minute * MINUTE)
        seen.append(own_teams(published))
    assert all(before <= after for before, after in pairwise(seen))
    assert len(seen[-1]) - len(seen[0]) <= 4  # the tenth that was free


def test_the_next_hour_begins_with_those_at_work_in_the_last() -> None:
    _, memory = bounded(a_look(100, ["team-0098"]), None, limit_for(30), NOON)
    _, memory = bounded(a_look(100, ["team-0099"]), memory, limit_for(30), NOON + 30 * MINUTE)
    for hours, kept in ((1, True), (2, True), (3, True)):
        published, memory = bounded(a_look(100), memory, limit_for(30), NOON + hours * HOUR)
        # After two hours without work they stay: they had series of their own, and nobody at work needs the place.
        assert ({"team-0098", "team-0099"} <= own_teams(published)) is kept
    published, _ = bounded(a_look(100, names(60)[30:]), memory, limit_for(30), NOON + 4 * HOUR)
    assert own_teams(published) <= set(names(60)[30:])


def test_a_team_with_the_name_of_the_others_is_one_of_them() -> None:
    look = [*a_look(40), *of_team(OTHER, used=5)]
    published, memory = bounded(look, None, limit_for(20), NOON)
    assert OTHER not in memory.own
    counts = Counter((one.name, *one.dimensions.values()) for one in published)
    assert max(counts.values()) == 1
    assert bounded(look, None, limit_for(42), NOON)[1].cut == 0


def test_preemptions_of_and_for_teams_without_series_are_of_the_others() -> None:
    pairs = [("team-0001", "unknown"), ("team-0001", "team-0038"), ("team-0001", "team-0039"), ("team-0002", "gone")]
    look = [*a_look(40), *(one for pair in pairs for one in preempted(*pair))]
    published, memory = bounded(look, None, limit_for(30), NOON)
    assert not {"team-0038", "team-0039"} & set(memory.own)
    assert {tuple(one.dimensions.values()): one.value for one in published if one.name == metric.PREEMPTIONS.name} == {
        ("team-0001", "InClusterQueue", "unknown"): 1,
        ("team-0001", "InClusterQueue", OTHER): 2,
        ("team-0002", "InClusterQueue", "gone"): 1,
    }


def test_a_wave_of_preemptions_cannot_pass_the_limit() -> None:
    limit, memory, seen = limit_for(30), None, set()
    for minute in range(5):
        wave = [
            one
            for team in names(30)
            for by in names(30)
            for one in preempted(team, by, reason=f"reason-{minute}", times=2)
        ]
        published, memory = bounded([*a_look(30), *wave], memory, limit, NOON + minute * MINUTE)
        seen |= series(published)
        assert sum(one.value for one in published if one.name == "Preemptions") == 1800
    assert len(seen) + FIXED <= limit


looks = st.lists(
    st.tuples(
        st.integers(0, 50),  # minutes since the look before
        st.integers(1, 30),  # teams
        st.sets(st.integers(0, 29), max_size=10),  # at work
        st.sets(st.tuples(st.integers(0, 29), st.integers(0, 29)), max_size=8),  # preempted by
        st.booleans(),  # with limits of borrowing
    ),
    min_size=1,
    max_size=6,
)


@given(looks=looks, limit=st.integers(FIXED + 3 + ROOM_OF_OTHER, 400))
def test_no_hour_has_more_series_than_the_limit_and_sums_stay(looks: list[tuple], limit: int) -> None:  # type: ignore[type-arg]
    memory: SeriesMemory | None = None
    now = NOON
    hours: dict[datetime, set[tuple[str, ...]]] = {}
    for minutes, count, busy, pairs, limited in looks:
        now += minutes * MINUTE
        teams = [of_team(t, used=3 * (n in busy), limited=limited) for n, t in enumerate(names(count))]
        waves = [preempted(f"team-{a:04}", f"team-{b:04}") for a, b in sorted(pairs)]
        look = [*of_cluster(), *(one for some in (*teams, *waves) for one in some)]
        published, memory = bounded(look, memory, limit, now)
        assert memory == SeriesMemory.from_bytes(memory.to_bytes())
        seen = hours.setdefault(memory.hour, set())
        seen |= series(published)
        assert len(seen) + FIXED <= limit
        assert len(series(published)) == sum(bool(one.dimensions) for one in published)  # each series once
        for one in METRICS:
            before = [value.value for value in look if value.name == one.name]
            after = [value.value for value in published if value.name == one.name]
            if one.together == "sum":
                assert sum(before) == sum(after)
            if one.together == "max":
                assert max(before) == max(after)
        shuffled = look[::-2] + look[-2::-2]
        assert set(map(repr, bounded(shuffled, memory, limit, now)[0])) == set(map(repr, published))


def test_what_fits_in_any_case_is_not_kept() -> None:
    possible = 2 * 4 * 26**2
    assert fits_in_any_case(a_look(25), limit_for(25) + possible)
    assert not fits_in_any_case(a_look(25), limit_for(25) + possible - 1)
    assert fits_in_any_case([], FIXED + 2 + 8)


def test_a_thousand_teams_with_fifteen_rows_each_are_bounded() -> None:
    look = a_look(1000, names(1000)[::3], types=15)
    began = process_time()
    published, memory = bounded(look, None, 5000, NOON)
    assert process_time() - began < 5
    assert len(series(published)) + FIXED <= 5000
    assert memory.wanted == FIXED + 45 + 1000 * 138 + 8 * 15 + 3 + 2
    assert len(memory.to_bytes()) < 60_000
    assert set(memory.own) <= set(names(1000)[::3])
    assert memory.cut == 1000 - len(memory.own)


INFINITE = b'{"form": 1, "hour": "2026-11-20T09:00:00+00:00", "limit": Infinity}'


@pytest.mark.parametrize("stored", [b"", b"{}", b"\x1f\x8b\x08", gzip.compress(INFINITE, mtime=0)], ids=len)
def test_a_damaged_memory_is_refused(stored: bytes) -> None:
    with pytest.raises(ValueError, match=r"not a memory of metric series|Expecting value"):
        SeriesMemory.from_bytes(stored)


def test_a_look_at_a_thousand_teams_writes_a_bounded_number_of_bytes_into_its_log(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every team uses something, waits, and has 15 instance types with long names: docs/scale.md has the bound.

    Each amount of a quota has what it is in cores, memory and network interfaces beside it, as on real nodes.
    """
    monkeypatch.setenv("POWERTOOLS_METRICS_NAMESPACE", "TaskGovernance")
    amounts = {amount.name for amount in PER_TYPE}
    beside = {"cpu": 191.45, "memory": 2_163_444_121_600, "efa": 32}
    teams = [name.ljust(63, "x") for name in names(1000)]
    values = [*of_cluster(15), *(value for team in teams for value in of_team(team, used=2, waiting=1, types=15))]
    values = [
        value._replace(properties={**value.properties, **{f"{value.name}_{part}": of for part, of in beside.items()}})
        if value.name in amounts
        else value
        for value in values
    ]
    published, _ = bounded(values, None, DEFAULT_LIMIT, NOON)
    assert len(series(published)) + FIXED > 0.9 * DEFAULT_LIMIT
    EmbeddedMetrics().record("ml-cluster", published)
    lines = capsys.readouterr().out.splitlines()
    printed = sum(len(line.encode()) + 1 for line in lines)
    assert 600_000 < printed <= 800_000
    assert max(len(line.encode()) for line in lines) <= 16 * 1024
