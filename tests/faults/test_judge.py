"""The judge of the matrix sees each kind of mistake: one is put into the product, and a cell fails for it.

Without the mistake these cells come out right: they are cells of the matrix.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.faults import evidence, fault_cases, invariants, sites, steps
from tests.faults.scenario import TYPE
from tests.faults.sites import MACHINE, Kind

if TYPE_CHECKING:
    from collections.abc import Callable

    from taskgov_embedded.walkthrough.world import World
    from tests.faults.fault_cases import Clean

HARMLESS = (MACHINE, "Invoke", 1, Kind.THROTTLE_ONCE)
OUTAGE = ("ApplyChangeRole", "UpdateComputeQuota", 1, Kind.THROTTLE_EVER)


def problems(world: World, clean: Clean, wanted: tuple[str, str, int, Kind]) -> str:
    """Play one cell, and return what the judge says of it."""
    (cell,) = [
        case
        for case in sites.cells(sites.sites(clean.calls))
        if (case.site.call.caller, case.site.call.operation, case.site.number, case.kind) == wanted
    ]
    (outcome,) = fault_cases.play(world, clean, [(cell,)])
    return "; ".join(outcome.problems)


def writes(count: int) -> Callable[[Any], Any]:
    """Return a mistake of `update_quota`: beta gets this number of instances once, whatever was planned."""
    made: list[int] = []

    def mistaken(own: Any) -> Any:
        def update_quota(self: Any, quota_id: str, version: int, config: Any, target: Any) -> Any:
            if target.team_name == "beta" and not made:
                made.append(count)
                resources = [{"InstanceType": TYPE, "Count": count}]
                config = type(config).model_validate({**config.to_api(), "ComputeQuotaResources": resources})
            return own(self, quota_id, version, config, target)

        return update_quota

    return mistaken


def leases_for_an_hour(own: Any) -> Any:
    def hold_lock(self: Any, cluster_arn: str, owner: str, token: int, now: Any, *more: Any) -> None:
        own(self, cluster_arn, owner, token, now.fromtimestamp(now.timestamp() + 3600, now.tzinfo), *more)

    return hold_lock


def counts_one_too_many(own: Any) -> Any:
    def record_run(self: Any, record: Any) -> None:
        object.__setattr__(record, "applied", record.applied + 1)
        own(self, record)

    return record_run


def says(**what: Any) -> Callable[[Any], Any]:
    """Return a mistake of `record_run`: records of runs that wrote something say this instead."""

    def mistaken(own: Any) -> Any:
        def record_run(self: Any, record: Any) -> None:
            for name, value in what.items() if record.applied else ():
                object.__setattr__(record, name, value)
            own(self, record)

        return record_run

    return mistaken


def keeps_no_record(_own: Any) -> Any:
    def record_run(_self: Any, _record: Any) -> None:
        """Keep nothing."""

    return record_run


def counts_twice(own: Any) -> Any:
    def record(self: Any, cluster_name: str, measurements: Any) -> None:
        own(self, cluster_name, measurements)
        own(self, cluster_name, measurements)

    return record


def tells_again(own: Any) -> Any:
    def count_once(self: Any, cluster_arn: str, identity: str, *args: Any, **kwargs: Any) -> bool:
        return bool(own(self, cluster_arn, identity, *args, **kwargs)) or identity.startswith("notice-")

    return count_once


def releases_before_writing(own: Any) -> Any:
    def hold_lock(self: Any, cluster_arn: str, owner: str, token: int, now: Any, *more: Any) -> None:
        own(self, cluster_arn, owner, token, now.fromtimestamp(now.timestamp() - 301, now.tzinfo), *more)

    return hold_lock


TABLE, METRICS = (f"taskgov.adapters.{name}" for name in ("dynamodb", "metrics"))
SAGEMAKER = "taskgov.backends.hyperpod_eks.sagemaker"


@pytest.mark.parametrize("module", [invariants, steps, evidence], ids=lambda module: module.__name__)
def test_the_judge_shares_nothing_with_the_product(module: Any) -> None:
    found = ast.walk(ast.parse(Path(module.__file__).read_text()))
    imported = [
        name
        for node in found
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    ]
    assert imported
    assert [name for name in imported if name.partition(".")[0] == "taskgov"] == []


@pytest.mark.faults
@pytest.mark.parametrize(
    ("function", "module", "method", "mistake", "cell", "said"),
    [
        ("ApplyChange", SAGEMAKER, "HyperPodEks.update_quota", writes(9), HARMLESS, "quotas add up to"),
        ("ApplyChange", SAGEMAKER, "HyperPodEks.update_quota", writes(1), HARMLESS, "beta-quota was lowered to 1"),
        ("ApplyChange", TABLE, "Table.hold_lock", leases_for_an_hour, HARMLESS, "the lock was leased until"),
        ("ApplyChange", TABLE, "Table.hold_lock", releases_before_writing, HARMLESS, "without a lock"),
        ("PublishUsage", TABLE, "Table.record_run", counts_one_too_many, HARMLESS, "says 6 applied; 5 stand"),
        ("PublishUsage", TABLE, "Table.record_run", says(written=()), HARMLESS, "does not name"),
        ("PublishUsage", TABLE, "Table.record_run", says(outcome="planned"), HARMLESS, "says planned and wrote"),
        ("PublishUsage", TABLE, "Table.record_run", keeps_no_record, HARMLESS, "no record tells of the write"),
        ("PublishUsage", METRICS, "EmbeddedMetrics.record", counts_twice, HARMLESS, "ChangesApplied counts 10 changes"),
        ("PublishUsage", TABLE, "Table.count_once", tells_again, OUTAGE, "people were told"),
    ],
    ids=["sum", "floor", "lease", "lock", "count", "names", "outcome", "no record", "metrics", "notice"],
)
def test_a_mistake_in_the_product_fails_the_cell(
    *,
    world: World,
    clean: Clean,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    module: str,
    method: str,
    mistake: Callable[[Any], Any],
    cell: tuple[str, str, int, Kind],
    said: str,
) -> None:
    owner, name = method.split(".")
    loaded = world.stack.runtime.versions.modules(f"{function}Function", module)
    assert loaded
    for imported in loaded:
        adapter = getattr(imported, owner)
        monkeypatch.setattr(adapter, name, mistake(getattr(adapter, name)))
    assert said in problems(world, clean, cell)
