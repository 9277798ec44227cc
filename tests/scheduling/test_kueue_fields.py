"""Every field, annotation, condition and gate of Kueue has its row: walked in Kueue's module, where it is at hand."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.scheduling import KueueModel, ManagerConfig
from taskgov.scheduling.config import GATE_DEFAULTS
from taskgov.scheduling.kueue_fields import KINDS, ROWS, Followed, row_of
from taskgov.scheduling.kueue_gates import AS_BY_DEFAULT, WITHOUT_INFLUENCE
from taskgov_embedded import yaml_text
from tests.cluster.binaries import kueue_module

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

POD_SPEC = "Workload.spec.podSets[].template.spec"


@pytest.fixture(scope="module")
def module() -> Path:
    """The folder of Kueue's Go module, as `make cluster-programs` fetches it."""
    found = kueue_module()
    if found is None:
        pytest.skip("Kueue's Go module is not at hand (make cluster-programs fetches it)")
    return found


def _leaves(schema: dict[str, Any], path: str) -> Iterator[str]:
    """Give the paths of a schema; of a pod and its containers, which Kubernetes defines, the fields one level deep."""
    properties = schema.get("properties")
    shallow = path.startswith(f"{POD_SPEC}.") and not path.endswith(("ontainers[]", ".resources"))
    if shallow and path not in {f"{POD_SPEC}.containers", f"{POD_SPEC}.initContainers"}:
        yield path
    elif properties:
        for name, below in properties.items():
            yield from _leaves(below, f"{path}.{name}")
    elif schema.get("type") == "array":
        yield from _leaves(schema["items"], f"{path}[]")
    else:
        yield path


@pytest.fixture(scope="module")
def fields(module: Path) -> set[str]:
    """The paths of all fields of Kueue's kinds."""
    return set(_fields(module))


def _fields(module: Path) -> Iterator[str]:
    for file in sorted((module / "config/components/crd/bases").glob("*.yaml")):
        definition = yaml_text.read(file.read_text())["spec"]
        for version in definition["versions"]:
            yield from _leaves(version["schema"]["openAPIV3Schema"], definition["names"]["kind"])


def test_every_field_of_kueues_objects_has_a_row(fields: set[str]) -> None:
    assert len(fields) > 250
    assert sorted(field for field in fields if row_of(field) is None) == []
    pods = [field for field in fields if field.startswith(f"{POD_SPEC}.")]
    assert len(pods) > 40
    assert [field for field in pods if (row := row_of(field)) is None or row.path == POD_SPEC] == []


def test_every_row_of_a_field_is_of_a_field_that_there_is(fields: set[str]) -> None:
    plain = [row.path for row in ROWS if not re.search(r"^\*|[{]|type=", row.path)]
    gone = [path for path in plain if not any(re.match(re.escape(path) + r"($|[.\[])", field) for field in fields)]
    assert gone == []


def test_every_annotation_and_condition_of_kueue_has_a_row(module: Path) -> None:
    sources = [*(module / "apis").rglob("*.go"), *(module / "pkg").rglob("*constants*.go")]
    sources += (module / "pkg/workloadslicing").glob("*.go")
    text = "\n".join(path.read_text() for path in sources if not path.name.endswith("_test.go"))
    annotations = set(re.findall(r'"(kueue\.x-k8s\.io/[a-z-]+)"', text))
    assert len(annotations) > 30
    assert [a for a in sorted(annotations) if not _has_own_row(f"Workload.metadata.annotations{{{a}}}")] == []
    types = (module / "apis/kueue/v1beta2/workload_types.go").read_text()
    block = types[types.index("\tWorkloadAdmitted = ") : types.index("PreemptionGated string = ")]
    conditions = re.findall(r'^\tWorkload\w+ = "(\w+)"', block, re.MULTILINE)
    of_type = [name for name in conditions if not _is_reason(block, name)]
    assert len(of_type) >= 10
    assert [c for c in of_type if not _has_own_row(f"Workload.status.conditions[type={c}]")] == []


def _is_reason(block: str, name: str) -> bool:
    return re.search(rf'\tWorkload\w*Reason\w+ = "{name}"', block) is not None


def _has_own_row(path: str) -> bool:
    row = row_of(path)
    return row is not None and row.path == path


def test_every_feature_gate_of_kueue_has_one_row_with_its_default(module: Path) -> None:
    source = (module / "pkg/features/kube_features.go").read_text()
    table = source[source.index("defaultVersionedFeatureGates") :]
    defaults = {}
    for name, versions in re.findall(r"\n\t(\w+): \{(.*?)\n\t\},", table, re.DOTALL):
        known = re.findall(r'MustParse\("0\.(\d+)"\), Default: (\w+)', versions)
        defaults[name] = [on == "true" for minor, on in known if int(minor) <= 19][-1]
    harmless = [gate for gates in WITHOUT_INFLUENCE.values() for gate in gates]
    rows = Counter([*GATE_DEFAULTS, *AS_BY_DEFAULT, *harmless])
    assert rows == Counter(defaults.keys())
    followed = {**GATE_DEFAULTS, **AS_BY_DEFAULT}
    assert followed == {gate: defaults[gate] for gate in followed}


def test_no_row_stands_twice() -> None:
    assert [path for path, count in Counter(row.path for row in ROWS).items() if count > 1] == []
    assert all(bool(row.note) is (row.followed is not Followed.MODELLED) for row in ROWS)


def test_a_kind_that_is_not_kueues_is_refused() -> None:
    assert "LimitRange" not in KINDS
    with pytest.raises(ValueError, match="Kueue does not schedule by objects of kind Deployment"):
        KueueModel().apply({"kind": "Deployment", "metadata": {"name": "d"}})


GATES = [
    ({"TopologyAwareScheduling": False}, ["TopologyAwareScheduling"]),
    ({"TopologyAwareScheduling": True}, []),
    ({"PriorityBoost": True, "TLSOptions": False}, ["PriorityBoost"]),
    ({"PartialAdmission": False}, []),
    ({"OfALaterRelease": False}, ["OfALaterRelease"]),
]


@pytest.mark.parametrize(("gates", "named"), GATES)
def test_a_gate_that_is_set_otherwise_than_the_model_follows_is_named(gates: dict[str, bool], named: list[str]) -> None:
    assert [n.name for n in KueueModel(ManagerConfig(gates=gates)).not_modelled] == named
