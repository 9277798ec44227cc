"""What the ConfigMap of Kueue's manager says is bounded: an odd one is not read, and ends no look at a cluster."""

import pytest

from taskgov.hyperpod.names import MANAGER_CONFIG_KEY
from taskgov.snapshot.manager import config_of, settings_in

HEAD = "apiVersion: config.kueue.x-k8s.io/v1beta2\n"
ALIASES = "".join(f"x{n}: &x{n} [{', '.join([f'*x{n - 1}'] * 10)}]\n" for n in range(1, 7))
ODD = {
    "aliases of aliases": f"{HEAD}x0: &x0 [a]\n{ALIASES}resources: {{transformations: *x6}}",
    "deep brackets": f"{HEAD}x: {'[' * 5_000}{']' * 5_000}",
    "no mapping": "[]",
    "no YAML": "a: b: c",
    "a key twice": f"{HEAD}featureGates: {{}}\nfeatureGates: {{}}",
    "a tag": f"{HEAD}x: !!python/name:os.system y",
    "no number": f"{HEAD}resources: {{transformations: [{{input: cpu, outputs: {{credits: .nan}}}}]}}",
    "a date": f"{HEAD}resources: {{transformations: [{{input: cpu, outputs: {{credits: 2026-11-20}}}}]}}",
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_a_configuration_that_cannot_be_read_is_assumed_and_named(text: str) -> None:
    settings = settings_in({"data": {MANAGER_CONFIG_KEY: text}})
    assert settings.configuration is None
    assert settings.unread.startswith(f"{MANAGER_CONFIG_KEY} of ConfigMap kueue-manager-config cannot be read: ")
    assert [feature for feature, _ in config_of(settings, None).not_followed] == ["AssumedConfiguration"]


def test_what_changes_a_decision_is_kept_of_a_configuration() -> None:
    text = f"{HEAD}clientConnection: {{qps: 50}}\nfeatureGates: {{PartialAdmission: false}}"
    kept = settings_in({"data": {MANAGER_CONFIG_KEY: text}}).configuration
    assert kept == {"apiVersion": HEAD.split()[1], "featureGates": {"PartialAdmission": False}}
