"""What teams have today on one instance type."""

from taskgov.advice.today import gpus_of
from taskgov.hyperpod.instance_types import InstanceTypeTable
from tests.allocation.world import quota, row


def test_gpus_are_counted_beside_a_row_on_a_type_whose_numbers_are_unknown() -> None:
    known = quota("team-a", row("ml.none.large", Count=1), row("ml.g5.12xlarge", Count=2))
    assert gpus_of([known], "ml.g5.12xlarge", InstanceTypeTable()) == {"team-a": 8}
