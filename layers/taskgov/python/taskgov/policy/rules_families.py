"""The rules of quotas on hardware families: what no single field can break (`taskgov.policy.rules` applies them)."""

from collections.abc import Iterator

from taskgov.hyperpod.hardware import stands_for
from taskgov.policy.document import CapacityBasis
from taskgov.policy.draft import Broken, Draft
from taskgov.policy.measured import Unit


def families_of_a_team_are_apart(draft: Draft) -> Iterator[Broken]:
    """One quota for each instance type: a family stands for none that has an exact row, a share or another family."""
    types = draft.instance_types()
    for index, team in enumerate(draft.document.teams):
        rows = team.quota.compute_quota_resources if team.quota else ()
        exact = {row.instance_type for row in rows} | {share.instance_type for share in team.share}
        earlier: dict[str, str] = {}
        for entry, promise in enumerate(team.families):
            mine = [name for name in types if stands_for(promise.family, name)]
            place = ("teams", index, "families", entry, "family")
            if both := sorted(exact.intersection(mine)):
                rule = f"stands for {both[0]} too, on which this team already has a quota: keep one of them"
                yield Broken(place, promise.family, rule)
            elif again := next((name for name in mine if name in earlier), None):
                rule = f"stands for {again}, as {earlier[again]} of this team does: keep one of them"
                yield Broken(place, promise.family, rule)
            elif promise.family in earlier.values():
                yield Broken(place, promise.family, "is given twice")
            earlier |= dict.fromkeys(mine or (promise.family,), promise.family)


def families_in_instances_need_the_instances_basis(draft: Draft) -> Iterator[Broken]:
    """Guarantees on the allocatable basis are written in parts, also those on families."""
    if draft.document.capacity.basis is CapacityBasis.ALLOCATABLE:
        for index, team in enumerate(draft.document.teams):
            for entry, promise in enumerate(team.families):
                if promise.count is not None and promise.unit is Unit.INSTANCES:
                    place = ("teams", index, "families", entry, "count")
                    yield Broken(place, promise.count, "needs unit: accelerators where capacity.basis is allocatable")
