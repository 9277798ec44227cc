"""Reading and writing Kubernetes quantities."""

from __future__ import annotations

from decimal import ROUND_CEILING, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity

from taskgov.quantities import CPU, GPU, MEMORY, UNLIMITED, add, format_quantity, is_accelerator, parse, times


@pytest.mark.parametrize(
    ("resource", "text", "amount"),
    [
        (CPU, "1", 1000),
        (CPU, "0.5", 500),
        (CPU, "100u", 1),
        (CPU, "1e3", 1_000_000),
        (CPU, "2k", 2_000_000),
        (MEMORY, "1Ki", 1024),
        (MEMORY, "1.5Gi", 1_610_612_736),
        (MEMORY, "100m", 1),
        (MEMORY, "1E", 10**18),
        (MEMORY, "1E3", 1000),
        (MEMORY, "12e-1", 2),
        (MEMORY, "+.5Mi", 2**19),
        (MEMORY, "1.", 1),
        (CPU, "1500000n", 2),
        (GPU, "1e30", UNLIMITED),
        (GPU, "8", 8),
        (GPU, "-2", -2),
        (GPU, "9223372036854775808", UNLIMITED),
        (MEMORY, "16Ei", UNLIMITED),
    ],
)
def test_a_quantity_is_read_into_base_units_rounding_up(resource: str, text: str, amount: int) -> None:
    assert parse(resource, text) == amount


@pytest.mark.parametrize(
    "text", ["", "Gi", "eight", "1ki", "1K", "1e3k", "1_000", "1.5.2", "NaN", "Infinity", "1 Gi", "1Gi\n", "\u0661"]
)
def test_what_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a Kubernetes quantity"):
        parse(MEMORY, text)


def test_numbers_from_yaml_are_read_as_they_are_written() -> None:
    assert parse(CPU, 0.1) == 100
    assert parse(GPU, 4) == 4


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        (CPU, 0, "0"),
        (CPU, 1, "1m"),
        (CPU, -1500, "-1500m"),
        (CPU, 96_000, "96"),
        (MEMORY, 0, "0"),
        (MEMORY, 1023, "1023"),
        (MEMORY, 1000, "1k"),
        (MEMORY, 1500, "1500"),
        (MEMORY, 2**60, "1Ei"),
        (MEMORY, 192 * 2**30, "192Gi"),
        (GPU, 1000, "1k"),
        (GPU, 1500, "1500"),
        ("hugepages-2Mi", 2**21, "2Mi"),
    ],
)
def test_an_amount_prints_in_canonical_form(resource: str, amount: int, text: str) -> None:
    assert format_quantity(resource, amount) == text


@given(
    st.decimals(-(10**6), 10**6, places=3),
    st.sampled_from(["", "n", "u", "m", "k", "M", "G", "T", "P", "Ki", "Mi", "Gi", "Ti", "Pi"]),
)
def test_quantities_are_read_as_the_client_library_reads_them(number: Decimal, suffix: str) -> None:
    text = f"{number}{suffix}"
    want = parse_quantity(text).to_integral_value(rounding=ROUND_CEILING)
    assert parse(MEMORY, text) == min(int(want), UNLIMITED)


@given(st.sampled_from([CPU, MEMORY, GPU]), st.integers(-(2**40), 2**62))
def test_what_is_written_is_read_back_exactly(resource: str, amount: int) -> None:
    assert parse(resource, format_quantity(resource, amount)) == amount


def test_sums_and_products_saturate() -> None:
    assert add(2, 3) == 5
    assert add(3, UNLIMITED) == UNLIMITED
    assert times(UNLIMITED // 2, 3) == UNLIMITED


def test_accelerators_are_gpus_their_slices_and_neuron_devices() -> None:
    assert is_accelerator(GPU)
    assert is_accelerator("nvidia.com/mig-1g.5gb")
    assert is_accelerator("aws.amazon.com/neurondevice")
    assert not is_accelerator(CPU)
