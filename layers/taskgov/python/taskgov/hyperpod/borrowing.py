"""What a team may use of each instance type: its nominal quota and how much it may borrow on top.

Rendering, allocation and simulation ask here. How HyperPod turns a sharing strategy into Kueue's limits:

| strategy | shares idle quota | borrowing limit | source |
| --- | --- | --- | --- |
| `LendAndBorrow` | yes | floor(nominal x BorrowLimit / 100), each resource by itself | printed ClusterQueue |
| `Lend` | yes | 0 | inferred |
| `DontLend` | no: outside the cohort, neither lends nor borrows | none | developer guide |

`AbsoluteBorrowLimits` win over `BorrowLimit` on the instance types they name, and are completed by ratio like quotas
(inferred: the API gives them the same structure). Nothing said means `LendAndBorrow` with 50 percent (API defaults).
"""

from dataclasses import dataclass

from taskgov.findings import Finding
from taskgov.findings.of_document import BORROW_LIMIT_ROUNDS_TO_ZERO
from taskgov.hyperpod.equality import DEFAULT_BORROW_LIMIT
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuotaConfig, ResourceSharingConfig, SharingStrategy
from taskgov.hyperpod.ratio import Amounts, complete_all
from taskgov.quantities import is_accelerator


@dataclass(frozen=True, slots=True)
class FlavorQuota:
    """A team's quota on one instance type, in base units. `borrowing` is None outside the cohort."""

    instance_type: str
    nominal: Amounts
    borrowing: Amounts | None


def flavor_quotas(config: ComputeQuotaConfig, table: InstanceTypeTable) -> tuple[FlavorQuota, ...]:
    """Return the quota on each instance type, in the order of the compute quota.

    A type that only `AbsoluteBorrowLimits` names comes last, with nothing of its own.
    Raises `UnknownInstanceTypeError`.

    Example: the quota and the limits that the documentation prints.
        >>> config = ComputeQuotaConfig.model_validate({
        ...     "ComputeQuotaResources": [{"InstanceType": "ml.g6.12xlarge", "Accelerators": 2, "VCpu": 48.0}],
        ...     "ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}})
        >>> [quota] = flavor_quotas(config, InstanceTypeTable())
        >>> quota.borrowing["nvidia.com/gpu"], quota.borrowing["cpu"], quota.borrowing["vpc.amazonaws.com/efa"]
        (1, 24000, 0)

    """
    sharing = sharing_of(config)
    nominal = complete_all(config.compute_quota_resources, table)
    absolute = complete_all(sharing.absolute_borrow_limits or (), table)
    if sharing.strategy is not SharingStrategy.LEND_AND_BORROW:
        absolute = {}
    return tuple(
        FlavorQuota(instance_type, own, _limit(sharing, own, absolute.get(instance_type)))
        for instance_type, own in _own_first(nominal, absolute).items()
    )


def sharing_of(config: ComputeQuotaConfig) -> ResourceSharingConfig:
    """Return how the team shares, with the API's default strategy where nothing was said."""
    return config.resource_sharing_config or ResourceSharingConfig()


def borrow_percent(sharing: ResourceSharingConfig) -> int:
    """Return what percentage of its own quota the team may borrow: 0 unless it borrows at all.

    Example:
        >>> borrow_percent(ResourceSharingConfig()), borrow_percent(ResourceSharingConfig(strategy="Lend"))
        (50, 0)

    """
    if sharing.strategy is not SharingStrategy.LEND_AND_BORROW:
        return 0
    return DEFAULT_BORROW_LIMIT if sharing.borrow_limit is None else sharing.borrow_limit


def percent_of(amounts: Amounts, percent: int) -> Amounts:
    """Return `percent` of each amount, rounded down.

    Example:
        >>> percent_of({"nvidia.com/gpu": 2, "vpc.amazonaws.com/efa": 1}, 50)
        {'nvidia.com/gpu': 1, 'vpc.amazonaws.com/efa': 0}

    """
    return {resource: amount * percent // 100 for resource, amount in amounts.items()}


def borrow_limit_findings(team: str, config: ComputeQuotaConfig, table: InstanceTypeTable) -> tuple[Finding, ...]:
    """Warn of a borrow limit that lets nobody borrow an accelerator, because a part of one rounds down to none.

    Types whose numbers are not known are skipped: they have a finding of their own.
    """
    sharing = sharing_of(config)
    percent = borrow_percent(sharing)
    absolute = {limit.instance_type for limit in sharing.absolute_borrow_limits or ()}
    known = tuple(row for row in config.compute_quota_resources if row.instance_type in table)
    return tuple(
        _rounds_to_zero(team, instance_type, resource, amount, percent)
        for instance_type, amounts in complete_all(known, table).items()
        for resource, amount in amounts.items()
        if percent and instance_type not in absolute and is_accelerator(resource) and 0 < amount * percent < 100
    )


def _rounds_to_zero(team: str, instance_type: str, resource: str, amount: int, percent: int) -> Finding:
    return BORROW_LIMIT_ROUNDS_TO_ZERO.about(
        team,
        {"instanceType": instance_type, "resource": resource, "nominal": amount, "borrowLimit": percent},
        team=team,
        instance_type=instance_type,
        resource=resource,
        amount=amount,
        percent=percent,
        least=-(-100 // amount),
    )


def _limit(sharing: ResourceSharingConfig, nominal: Amounts, absolute: Amounts | None) -> Amounts | None:
    if sharing.strategy is SharingStrategy.DONT_LEND:
        return None
    limit = percent_of(nominal, borrow_percent(sharing))
    return limit if absolute is None else limit | absolute


def _nothing(amounts: Amounts) -> Amounts:
    return dict.fromkeys(amounts, 0)


def _own_first(nominal: dict[str, Amounts], absolute: dict[str, Amounts]) -> dict[str, Amounts]:
    """Add the types that may only be borrowed, with no quota of their own, after those that have one."""
    return nominal | {name: _nothing(limit) for name, limit in absolute.items() if name not in nominal}
