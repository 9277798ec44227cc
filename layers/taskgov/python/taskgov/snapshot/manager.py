"""How does Kueue's manager run on this cluster? As its ConfigMap says, or as the cluster policy has it run.

Decisions ask here, and nowhere else, so that a prediction and what is said of it rest on one configuration.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from taskgov.hyperpod.names import MANAGER_CONFIG_KEY, MANAGER_CONFIG_MAP
from taskgov.kueue.render import manager_configuration
from taskgov.scheduling.config import ManagerConfig
from taskgov.scheduling.kueue_settings import READ, read_configuration
from taskgov.scheduling.unmodelled import ASSUMED_CONFIGURATION
from taskgov.snapshot.model import ManagerSettings

if TYPE_CHECKING:
    from taskgov.hyperpod.model import SchedulerConfig
    from taskgov.snapshot.model import KubernetesObject


def settings_in(config_map: KubernetesObject) -> ManagerSettings:
    """Return what Kueue's ConfigMap says, without what changes no decision; why not, where it cannot be read.

    Example:
        >>> settings_in({"data": {}}).unread
        'ConfigMap kueue-manager-config has no controller_manager_config.yaml'

    """
    from taskgov.policy.text import read_text  # noqa: PLC0415 - only who reads the cluster waits for YAML

    data = config_map.get("data")
    text = data.get(MANAGER_CONFIG_KEY) if isinstance(data, Mapping) else None
    if not isinstance(text, str):
        return ManagerSettings(unread=f"ConfigMap {MANAGER_CONFIG_MAP} has no {MANAGER_CONFIG_KEY}")
    read = read_text(text)
    if read.data is None or read.violations:
        return ManagerSettings(unread=_unreadable(str(read.violations[0])))
    try:
        read_configuration(read.data)
    except ValueError as error:
        return ManagerSettings(unread=_unreadable(str(error)))
    return ManagerSettings({name: value for name, value in read.data.items() if name in READ})


def config_of(settings: ManagerSettings, scheduler: SchedulerConfig | None) -> ManagerConfig:
    """Return how the manager runs; what was not read is assumed: as the policy says, and Kueue's defaults.

    A configuration that was looked for and could not be read is named among what is not followed.
    """
    if settings.configuration is not None:
        return read_configuration(settings.configuration)
    assumed = ManagerConfig(fair_sharing=manager_configuration(scheduler).fair_sharing)
    if not settings.unread:
        return assumed
    return replace(assumed, not_followed=((ASSUMED_CONFIGURATION, MANAGER_CONFIG_MAP),))


def _unreadable(because: str) -> str:
    return f"{MANAGER_CONFIG_KEY} of ConfigMap {MANAGER_CONFIG_MAP} cannot be read: {because}"
