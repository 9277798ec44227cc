import json
from pathlib import Path
from typing import Any

import pytest

from taskgov.findings import Severity
from taskgov.hyperpod.instance_types import (
    KNOWN_TYPES,
    InstanceResources,
    InstanceTypeTable,
    UnknownInstanceTypeError,
    is_instance_type_name,
    mig_slices,
    unknown_type_finding,
)

FACTS = Path(__file__).parents[3] / "shared" / "facts"
FIVE_AND_A_QUARTER = {"ml.c5n.large": 5.25}
NOT_CERTAIN = "ml.g7."


def collected(name: str) -> Any:
    path = FACTS / name
    if not path.exists():
        pytest.skip(f"the collected facts are not beside this checkout: {path}")
    return json.loads(path.read_text())


def test_every_type_agrees_with_the_collected_numbers() -> None:
    rows: dict[str, dict[str, Any]] = collected("instance_types.json")["instance_types"]

    ours = {name: KNOWN_TYPES[name] for name in rows}
    theirs = {
        name: InstanceResources(
            vcpu=row["vcpu"],
            memory_gib=FIVE_AND_A_QUARTER.get(name, row["memory_gib"]),
            gpu=row["gpu"],
            neuron_device=row["neuron_device"],
            efa=row["efa"],
            mig_profiles=tuple(row["mig_profiles"]),
            threads_per_core=KNOWN_TYPES[name].threads_per_core,  # the collected rows do not tell
        )
        for name, row in rows.items()
    }

    assert len(rows) == 122
    assert ours == theirs


def test_all_types_of_the_api_are_known_but_those_whose_numbers_are_not_certain() -> None:
    api = collected("cluster_instance_types.json")

    assert {name for name in api if name not in KNOWN_TYPES} == {n for n in api if n.startswith(NOT_CERTAIN)}
    assert [name for name in KNOWN_TYPES if name not in api] == []


@pytest.mark.parametrize(
    ("name", "vcpu", "memory_gib", "gpu", "efa"),
    [
        ("ml.g5.8xlarge", 32, 128, 1, 1),
        ("ml.g6.12xlarge", 48, 192, 4, 1),
        ("ml.p5.48xlarge", 192, 2048, 8, 32),
        ("ml.p5.4xlarge", 16, 256, 1, 1),
        ("ml.g7e.12xlarge", 48, 512, 2, 1),
        ("ml.t3.medium", 2, 4, 0, 0),
        ("ml.c8g.medium", 1, 2, 0, 0),
        ("ml.g4dn.12xlarge", 48, 192, 4, 1),
        ("ml.r5d.16xlarge", 64, 512, 0, 0),
        ("ml.c5n.large", 2, 5.25, 0, 0),
    ],
)
def test_a_type_is_its_familys_rule_or_its_exception(
    name: str, vcpu: int, memory_gib: float, gpu: int, efa: int
) -> None:
    found = KNOWN_TYPES[name]

    assert (found.vcpu, found.memory_gib, found.gpu, found.efa) == (vcpu, memory_gib, gpu, efa)


def test_trainium_counts_neuron_devices_as_accelerators() -> None:
    trainium = KNOWN_TYPES["ml.trn1.32xlarge"]

    assert trainium.accelerators == 16
    assert trainium.accelerator_resource == "aws.amazon.com/neurondevice"
    assert trainium.amounts()["nvidia.com/gpu"] == 0


def test_memory_of_every_type_is_a_whole_number_of_bytes() -> None:
    assert all(one.amounts()["memory"] == one.memory_gib * 2**30 for one in KNOWN_TYPES.values())


def test_a_document_may_add_a_type_and_better_another() -> None:
    g7 = InstanceResources(vcpu=8, memory_gib=32, gpu=1)
    better = InstanceResources(vcpu=144, memory_gib=960, gpu=4, efa=4)
    table = InstanceTypeTable({"ml.g7.2xlarge": g7, "ml.p6e-gb200.36xlarge": better})

    assert table.require("ml.g7.2xlarge") == g7
    assert table.require("ml.p6e-gb200.36xlarge").efa == 4
    assert table.require("ml.g5.xlarge") == KNOWN_TYPES["ml.g5.xlarge"]
    assert "ml.g7.2xlarge" in table
    assert "ml.g7.2xlarge" not in InstanceTypeTable()


def test_an_unknown_type_says_how_to_supply_its_numbers() -> None:
    table = InstanceTypeTable()

    assert table.resources_of("ml.x1.huge") is None
    with pytest.raises(UnknownInstanceTypeError, match=r"instanceTypes: \{ml.x1.huge: \{vcpu: \.\., memoryGiB"):
        table.require("ml.x1.huge")
    finding = unknown_type_finding("ml.x1.huge", "teams[0].quota")
    assert finding.severity is Severity.WARNING
    assert finding.subject == "teams[0].quota"
    assert "describe-instance-types --instance-types x1.huge" in finding.remedy


@pytest.mark.parametrize("name", ["g5.8xlarge", "ml.g5", "ML.g5.xlarge", "ml..xlarge", "ml.g5.8 xlarge", ""])
def test_what_is_not_spelled_as_a_type_is_no_type(name: str) -> None:
    assert not is_instance_type_name(name)


def test_every_known_name_is_spelled_as_a_type() -> None:
    assert all(is_instance_type_name(name) for name in KNOWN_TYPES)


@pytest.mark.parametrize("profile", ["1g.5gb", "mig-5gb", "mig-xg.5gb", ""])
def test_what_is_no_mig_profile_is_refused(profile: str) -> None:
    with pytest.raises(ValueError, match="is not a MIG profile"):
        mig_slices(profile)


def test_multithreading_can_be_switched_off_where_there_is_any() -> None:
    one_thread = {name.split(".")[1] for name, numbers in KNOWN_TYPES.items() if numbers.threads_per_core == 1}
    assert one_thread == {"c6g", "c7g", "c8a", "c8g", "m6g", "m7g", "m8a", "m8g", "p6e-gb200"}
    assert KNOWN_TYPES["ml.m5.xlarge"].at_threads(1).real_amounts()["cpu"] == 2_000
    assert KNOWN_TYPES["ml.m6g.xlarge"].at_threads(1).real_amounts()["cpu"] == 4_000
    assert KNOWN_TYPES["ml.m5.xlarge"].at_threads(2) == KNOWN_TYPES["ml.m5.xlarge"].at_threads(None)
