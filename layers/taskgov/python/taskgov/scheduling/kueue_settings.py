"""Which settings of Kueue's manager does this model follow? One row for each, and what a configuration says by them.

The settings are those of `Configuration` (`config.kueue.x-k8s.io`, v1beta1 and v1beta2), as Kueue 0.19.2 reads them
from `controller_manager_config.yaml`. A row stands for its path and for everything below it. A test walks the types of
Kueue's module, and fails for a setting without a row (`tests/scheduling/test_kueue_settings.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

from taskgov.quantities import exact
from taskgov.scheduling.config import (
    DEFAULT_STRATEGIES,
    AdmissionFairSharing,
    ManagerConfig,
    RequeueBackoff,
    ResourceTransformation,
    Strategy,
)
from taskgov.scheduling.kueue_fields import Followed, Row
from taskgov.scheduling.unmodelled import CLAIMS, QUOTA_CHECK

GROUP: Final = "config.kueue.x-k8s.io"
VERSIONS: Final = ("v1beta2", "v1beta1")

_MODELLED: Final = """
fairSharing
featureGates
waitForPodsReady.enable
waitForPodsReady.requeuingStrategy
waitForPodsReady.blockAdmission
resources.excludeResourcePrefixes
resources.transformations
admissionFairSharing
"""

_WITHOUT_INFLUENCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "it names the object": "apiVersion kind",
        "it is about how the manager runs and is reached": """
            namespace clientConnection controller health internalCertManagement leaderElection pprofBindAddress tls
            webhook
        """,
        "it is about what the manager shows": "metrics queueVisibility visibilityServer",
        "it says which jobs become workloads": "integrations managedJobsNamespaceSelector manageJobsWithoutQueueName",
        "it says when finished objects are deleted": "objectRetentionPolicies",
        "it is about clusters of MultiKueue, whose use is named by itself": "multiKueue",
        "a workload is evicted by it later, which its conditions show then": """
            waitForPodsReady.timeout waitForPodsReady.recoveryTimeout
        """,
    },
)

_NOT_MODELLED: Final[Mapping[str, str]] = MappingProxyType(
    {
        CLAIMS: "resources.deviceClassMappings",
        QUOTA_CHECK: "resources.quotaCheckStrategy",
    },
)

_AS_BY_DEFAULT: Final[Mapping[str, object]] = MappingProxyType({"resources.quotaCheckStrategy": "BlockUndeclared"})
"""What a setting that is not modelled may say without a difference, besides nothing."""

ROWS: Final[tuple[Row, ...]] = (
    *(Row(path, Followed.MODELLED) for path in _MODELLED.split()),
    *(
        Row(path, Followed.WITHOUT_INFLUENCE, why)
        for why, paths in _WITHOUT_INFLUENCE.items()
        for path in paths.split()
    ),
    *(Row(path, Followed.NOT_MODELLED, feature) for feature, paths in _NOT_MODELLED.items() for path in paths.split()),
)
"""One row for each setting, as short as one statement holds for all settings below it."""

READ: Final = frozenset({"apiVersion", "kind"}) | {
    row.path.partition(".")[0] for row in ROWS if row.followed is not Followed.WITHOUT_INFLUENCE
}
"""The parts of a Configuration that are kept of one that is read: no other changes a decision."""


def row_of(path: str) -> Row | None:
    """Return the row that a setting stands under, `None` when there is none.

    Example:
        >>> row_of("resources.transformations[].input").followed.value
        'modelled'
        >>> row_of("surprise") is None
        True

    """
    found = [row for row in ROWS if path.startswith(row.path) and path[len(row.path) :][:1] in {"", ".", "["}]
    return max(found, key=lambda row: len(row.path), default=None)


def read_configuration(configuration: Mapping[str, Any]) -> ManagerConfig:
    """Return what a Configuration says of decisions; what it does not say is as Kueue 0.19.2 defaults it.

    Raises `ValueError` that names the setting, for what Kueue's manager would not start with.

    Example:
        >>> config = read_configuration({"apiVersion": "config.kueue.x-k8s.io/v1beta2", "fairSharing": {}})
        Traceback (most recent call last):
        ...
        ValueError: fairSharing.preemptionStrategies: v1beta2 needs them

    """
    version = str(configuration.get("apiVersion", "")).removeprefix(f"{GROUP}/")
    if version not in VERSIONS:
        raise ValueError(f"apiVersion: {configuration.get('apiVersion')} is neither v1beta2 nor v1beta1 of {GROUP}")
    settings = _defaulted(configuration) if version == "v1beta1" else configuration
    gates = _gates(_part(settings, "featureGates"))
    if gates.get("DisableWaitForPodsReady"):
        settings = {**settings, "waitForPodsReady": None}
    strategies = _part(settings, "fairSharing").get("preemptionStrategies")
    if settings.get("fairSharing") is not None and not strategies:
        raise ValueError("fairSharing.preemptionStrategies: v1beta2 needs them")
    return ManagerConfig(
        fair_sharing=settings.get("fairSharing") is not None,
        strategies=_strategies(strategies) if strategies else DEFAULT_STRATEGIES,
        gates=gates,
        backoff=_backoff(_part(_part(settings, "waitForPodsReady"), "requeuingStrategy")),
        resources_exclude_prefixes=_texts(_part(settings, "resources"), "excludeResourcePrefixes"),
        resource_transformations=tuple(_transformations(_part(settings, "resources"))),
        wait_for_pods_ready_block_admission=_is_on(_part(settings, "waitForPodsReady"), "blockAdmission"),
        admission_fair_sharing=_admission_fair_sharing(settings),
        not_followed=tuple((row.note, row.path) for row in ROWS if _is_in_use(row, settings)),
    )


def _defaulted(configuration: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a v1beta1 Configuration as v1beta2 (apis/config/v1beta1/defaults.go, configuration_conversion.go)."""
    settings = dict(configuration)
    fair, ready = _part(settings, "fairSharing"), _part(settings, "waitForPodsReady")
    settings["fairSharing"] = settings["waitForPodsReady"] = None
    if fair.get("enable"):
        settings["fairSharing"] = {"preemptionStrategies": fair.get("preemptionStrategies") or [*DEFAULT_STRATEGIES]}
    if ready.get("enable"):
        block = ready.get("blockAdmission")
        settings["waitForPodsReady"] = {**ready, "blockAdmission": True if block is None else block}
    return settings


def _part(settings: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = settings.get(name)
    if part is None:
        return {}
    if not isinstance(part, Mapping):
        raise ValueError(f"{name}: it has to be an object")  # noqa: TRY004 - what is read is wrong, not a call
    return part


def _strategies(names: Any) -> tuple[Strategy, ...]:
    """Read strategies; Kueue takes each alone, and both in the order of its default."""
    if isinstance(names, list) and names in ([*DEFAULT_STRATEGIES], *([strategy] for strategy in DEFAULT_STRATEGIES)):
        return tuple(map(Strategy, names))
    raise ValueError(f"fairSharing.preemptionStrategies: Kueue has no {names}")


def _gates(gates: Mapping[str, Any]) -> Mapping[str, bool]:
    for gate, on in gates.items():
        if not isinstance(on, bool):
            raise ValueError(f"featureGates.{gate}: {on} is neither true nor false")  # noqa: TRY004
    return dict(gates)


def _backoff(strategy: Mapping[str, Any]) -> RequeueBackoff:
    """Read `waitForPodsReady.requeuingStrategy`."""
    default = RequeueBackoff()
    numbers = {name: strategy.get(name) for name in ("backoffBaseSeconds", "backoffMaxSeconds", "backoffLimitCount")}
    for name, number in numbers.items():
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or number < 0):
            raise ValueError(f"waitForPodsReady.requeuingStrategy.{name}: {number} is not a number that Kueue accepts")
    timestamp = strategy.get("timestamp") or "Eviction"
    if timestamp not in {"Eviction", "Creation"}:
        raise ValueError(f"waitForPodsReady.requeuingStrategy.timestamp: {timestamp} is neither Eviction nor Creation")
    base, longest, limit = numbers.values()
    return RequeueBackoff(
        base_seconds=default.base_seconds if base is None else base,
        max_seconds=default.max_seconds if longest is None else longest,
        limit=limit,
        by_creation=timestamp == "Creation",
    )


def _texts(settings: Mapping[str, Any], name: str) -> tuple[str, ...]:
    listed = settings.get(name) or []
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise ValueError(f"resources.{name}: {listed} is not a list of texts")
    return tuple(listed)


def _is_on(settings: Mapping[str, Any], name: str) -> bool:
    on = settings.get(name) or False
    if not isinstance(on, bool):
        raise ValueError(f"waitForPodsReady.{name}: {on} is neither true nor false")  # noqa: TRY004
    return on


def _transformations(resources: Mapping[str, Any]) -> Iterator[ResourceTransformation]:
    """Read `resources.transformations`: one for each input at most."""
    listed = resources.get("transformations") or []
    if not isinstance(listed, list):
        raise ValueError(f"resources.transformations: {listed} is not a list")  # noqa: TRY004
    for place, item in enumerate(listed):
        where = f"resources.transformations[{place}]"
        if not isinstance(item, Mapping) or not isinstance(item.get("input"), str):
            raise ValueError(f"{where}.input: it has to name a resource")  # noqa: TRY004
        strategy = item.get("strategy") or "Retain"
        if strategy not in {"Retain", "Replace"}:
            raise ValueError(f"{where}.strategy: {strategy} is neither Retain nor Replace")
        if any(item["input"] == before["input"] for before in listed[:place]):
            raise ValueError(f"{where}.input: {item['input']} is transformed already")
        for output, factor in _part(item, "outputs").items():
            _check_quantity(f"{where}.outputs.{output}", factor)
        multiply_by = item.get("multiplyBy") or ""
        if not isinstance(multiply_by, str):
            raise ValueError(f"{where}.multiplyBy: {multiply_by} names no resource")  # noqa: TRY004
        yield ResourceTransformation(item["input"], dict(_part(item, "outputs")), strategy, multiply_by)


def _check_quantity(path: str, factor: Any) -> None:
    try:
        exact(factor)
    except (ValueError, TypeError, ArithmeticError):
        raise ValueError(f"{path}: {factor!r:.60} is not a quantity") from None


def _admission_fair_sharing(settings: Mapping[str, Any]) -> AdmissionFairSharing | None:
    """Read `admissionFairSharing`; an interval that is not given is Kueue's (apis/config/v1beta2/defaults.go)."""
    name = "admissionFairSharing"
    if settings.get(name) is None:
        return None
    fair, default = _part(settings, name), AdmissionFairSharing()
    weights = _part(fair, "resourceWeights")
    for resource, weight in weights.items():
        if isinstance(weight, bool) or not isinstance(weight, int | float) or weight < 0:
            raise ValueError(f"{name}.resourceWeights.{resource}: {weight} is not a weight")
    return AdmissionFairSharing(
        _seconds(fair, f"{name}.usageHalfLifeTime", default.usage_half_life_time),
        _seconds(fair, f"{name}.usageSamplingInterval", default.usage_sampling_interval),
        dict(weights),
    )


_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")


def _seconds(settings: Mapping[str, Any], path: str, default: float) -> float:
    """Read a duration as Go writes it (`1h30m`)."""
    text = settings.get(path.rpartition(".")[2])
    if text is None:
        return default
    parts = _DURATION.findall(str(text))
    if text != "0" and (not parts or "".join(map("".join, parts)) != text):
        raise ValueError(f"{path}: {text} is not a duration, such as 5m or 168h")
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _is_in_use(row: Row, settings: Mapping[str, Any]) -> bool:
    """Return whether a setting that is not modelled is set, and to something that makes a difference."""
    if row.followed is not Followed.NOT_MODELLED:
        return False
    *parts, name = row.path.split(".")
    for part in parts:
        settings = _part(settings, part)
    value = settings.get(name)
    return bool(value) and value != _AS_BY_DEFAULT.get(row.path)
