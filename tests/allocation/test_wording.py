"""Numbers in sentences are written in full."""

import pytest

from taskgov.allocation.planner import plan_quotas
from taskgov.allocation.wording import said, said_number
from taskgov.hyperpod.model import ComputeQuotaResource
from tests.allocation.world import G5, document, fixed, nodes, quota, row, snapshot

MANY = 1_234_567


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (0, "0"),
        (3.0, "3"),
        (1e6, "1000000"),
        (1234567.5, "1234567.5"),
        (33.33, "33.33"),
        (1e-5, "0.00001"),
        (2 / 3, "0.667"),
        (1.123456, "1.123456"),
        (1.1234567, "1.123"),
    ],
)
def test_a_number_has_no_exponent(number: float, words: str) -> None:
    assert said_number(number) == words


def test_large_amounts_are_reported_in_full() -> None:
    assert said(ComputeQuotaResource(instance_type=G5, count=MANY)) == "1234567"
    policy = document(fixed("a", row(Count=2)), pool=False)
    plan = plan_quotas(snapshot(policy, nodes(2), [quota("a", row(Count=MANY))]), mode="plan")
    told = " ".join([*(change.because for change in plan.changes), *(each.because for each in plan.findings)])
    assert "1234567 -> 2" in told
    assert "Quotas guarantee 1234567 ml.g5.8xlarge" in told
    assert "e+06" not in told
