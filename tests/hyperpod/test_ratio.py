import pytest
from hypothesis import given
from hypothesis import strategies as st

from taskgov.hyperpod.instance_types import KNOWN_TYPES, InstanceTypeTable, UnknownInstanceTypeError
from taskgov.hyperpod.model import AcceleratorPartition, ComputeQuotaResource
from taskgov.hyperpod.ratio import Amounts, complete, complete_all
from taskgov.quantities import format_quantity

RESOURCES = ("nvidia.com/gpu", "aws.amazon.com/neurondevice", "cpu", "memory", "vpc.amazonaws.com/efa")


def promised(instance_type: str, **given: object) -> dict[str, str]:
    promise = ComputeQuotaResource.model_validate({"InstanceType": instance_type, **given})
    return printed(complete(promise, KNOWN_TYPES[instance_type]))


def printed(amounts: Amounts) -> dict[str, str]:
    return {name: format_quantity(name, amount) for name, amount in amounts.items()}


def row(gpu: str, neuron: str, cpu: str, memory: str, efa: str) -> dict[str, str]:
    return dict(zip(RESOURCES, (gpu, neuron, cpu, memory, efa), strict=True))


@pytest.mark.parametrize(
    ("instance_type", "given", "want"),
    [
        pytest.param(
            "ml.p5.48xlarge", {"Accelerators": 2}, row("2", "0", "48", "512Gi", "8"), id="dev guide: a quarter of p5"
        ),
        pytest.param(
            "ml.g5.2xlarge", {"Accelerators": 2}, row("2", "0", "16", "64Gi", "0"), id="dev guide: two instances of g5"
        ),
        pytest.param(
            "ml.g6.12xlarge",
            {"Accelerators": 2, "VCpu": 48.0},
            row("2", "0", "48", "192Gi", "1"),
            id="printed ClusterQueue: the larger share completes",
        ),
        pytest.param(
            "ml.g6.12xlarge", {"Accelerators": 2}, row("2", "0", "24", "96Gi", "1"), id="half an instance keeps its EFA"
        ),
        pytest.param("ml.m5.xlarge", {"Count": 4}, row("0", "0", "16", "64Gi", "0"), id="field report: four m5.xlarge"),
        pytest.param("ml.g5.12xlarge", {"Count": 1}, row("4", "0", "48", "192Gi", "1"), id="workshop: one g5.12xlarge"),
        pytest.param("ml.c5.2xlarge", {"VCpu": 2}, row("0", "0", "2", "4Gi", "0"), id="vCPU brings memory"),
        pytest.param("ml.g5.8xlarge", {"VCpu": 16}, row("0", "0", "16", "64Gi", "1"), id="vCPU brings no accelerator"),
        pytest.param("ml.m5.xlarge", {"MemoryInGiB": 8.0}, row("0", "0", "2", "8Gi", "0"), id="memory brings vCPU"),
        pytest.param(
            "ml.p5.48xlarge",
            {"Accelerators": 2, "VCpu": 10, "MemoryInGiB": 100},
            row("2", "0", "10", "100Gi", "8"),
            id="given values win",
        ),
        pytest.param(
            "ml.trn1.32xlarge", {"Accelerators": 8}, row("0", "8", "64", "256Gi", "4"), id="Neuron devices count too"
        ),
        pytest.param("ml.g5.xlarge", {"Count": 0}, row("0", "0", "0", "0", "0"), id="a promise of nothing"),
        pytest.param("ml.g5.xlarge", {}, row("0", "0", "0", "0", "0"), id="nothing said"),
        pytest.param("ml.m5.xlarge", {"VCpu": 0.5}, row("0", "0", "500m", "2Gi", "0"), id="half a vCPU"),
    ],
)
def test_a_promise_is_completed_by_ratio(instance_type: str, given: dict[str, object], want: dict[str, str]) -> None:
    assert promised(instance_type, **given) == want


def test_mig_partitions_bring_their_slices_of_the_instance() -> None:
    seven = promised("ml.p4d.24xlarge", AcceleratorPartition={"Type": "mig-1g.5gb", "Count": 7})

    assert seven == row("0", "0", "12", "144Gi", "1") | {"nvidia.com/mig-1g.5gb": "7"}


def test_a_tenth_of_a_vcpu_is_exact_although_a_float_is_not() -> None:
    amounts = complete(ComputeQuotaResource(instance_type="ml.m5.xlarge", vcpu=0.1), KNOWN_TYPES["ml.m5.xlarge"])

    assert amounts["cpu"] == 100
    assert amounts["memory"] == 2**30 * 4 // 10


def test_accelerators_on_a_type_without_any_stay_as_given() -> None:
    assert promised("ml.c5.xlarge", Accelerators=3) == row("3", "0", "0", "0", "0")


def test_promises_on_one_type_add_up_in_the_order_given() -> None:
    whole = ComputeQuotaResource(instance_type="ml.p4d.24xlarge", count=1)
    slices = ComputeQuotaResource(
        instance_type="ml.p4d.24xlarge", accelerator_partition=AcceleratorPartition(type="mig-3g.20gb", count=2)
    )
    other = ComputeQuotaResource(instance_type="ml.c5.large", count=1)

    totals = complete_all((other, whole, slices), InstanceTypeTable())

    assert list(totals) == ["ml.c5.large", "ml.p4d.24xlarge"]
    assert totals["ml.p4d.24xlarge"]["nvidia.com/gpu"] == 8
    assert totals["ml.p4d.24xlarge"]["nvidia.com/mig-3g.20gb"] == 2
    assert totals["ml.p4d.24xlarge"]["cpu"] == 96_000 + 96_000 * 6 // 56


def test_a_promise_on_an_unknown_type_cannot_be_completed() -> None:
    with pytest.raises(UnknownInstanceTypeError, match=r"ml\.x9\.large"):
        complete_all((ComputeQuotaResource(instance_type="ml.x9.large", count=1),), InstanceTypeTable())


@given(st.sampled_from(sorted(KNOWN_TYPES)), st.integers(0, 1000))
def test_whole_instances_are_that_many_times_one(instance_type: str, count: int) -> None:
    one = KNOWN_TYPES[instance_type]

    amounts = complete(ComputeQuotaResource(instance_type=instance_type, count=count), one)

    assert amounts == {name: amount * count for name, amount in one.amounts().items()}


@given(st.sampled_from(sorted(n for n, t in KNOWN_TYPES.items() if t.accelerators)), st.integers(0, 500))
def test_all_accelerators_of_instances_are_the_instances(instance_type: str, count: int) -> None:
    one = KNOWN_TYPES[instance_type]
    by_count = ComputeQuotaResource(instance_type=instance_type, count=count)
    by_accelerators = ComputeQuotaResource(instance_type=instance_type, accelerators=count * one.accelerators)

    assert complete(by_count, one) == complete(by_accelerators, one)


def test_amounts_are_the_callers_own_although_equal_promises_are_completed_once() -> None:
    promise, instance = (
        ComputeQuotaResource(instance_type="ml.p5.48xlarge", accelerators=2),
        KNOWN_TYPES["ml.p5.48xlarge"],
    )
    changed = complete(promise, instance)
    changed["cpu"] = 0

    assert complete(promise, instance)["cpu"] == 48_000
