"""Rows between what several configs of a quota have."""

from fractions import Fraction

import pytest

from taskgov.allocation.lines import lines_through, rows_on
from taskgov.allocation.row_numbers import Rows
from taskgov.hyperpod.instance_types import KNOWN_TYPES
from taskgov.hyperpod.model import ComputeQuotaConfig
from tests.allocation.world import P5, config, row


def rows(vcpu: float, accelerators: int) -> Rows:
    made = config(row(P5, Accelerators=accelerators, VCpu=vcpu))
    return tuple(ComputeQuotaConfig.model_validate(made).compute_quota_resources)


@pytest.mark.parametrize(
    ("vcpu", "kept"),
    [
        pytest.param(Fraction("36.25"), 36.25, id="which the API keeps"),
        pytest.param(Fraction("36.1"), 36, id="which a float of 32 bits does not have"),
    ],
)
def test_a_number_between_is_kept_where_the_api_keeps_it_and_else_rounded_down(vcpu: Fraction, kept: float) -> None:
    configs = (rows(24.5, 1), rows(48.5, 3))
    lines = lines_through(configs, KNOWN_TYPES[P5])
    assert lines is not None
    values = [{"vcpu": vcpu, "accelerators": Fraction(2)}.get(line.name, line.numbers[0]) for line in lines]
    (found,) = rows_on(lines, values, configs)
    assert (found.accelerators, found.vcpu) == (2, kept)
