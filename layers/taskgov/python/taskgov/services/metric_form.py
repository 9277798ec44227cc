"""What a metric is: name, unit, dimensions, meaning, source; and a measurement of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from taskgov.ports import Measurement

COUNT: Final = "Count"
SECONDS: Final = "Seconds"
PERCENT: Final = "Percent"

PER_QUOTA: Final = ("Team", "InstanceType", "Resource")
PER_CAPACITY: Final = ("InstanceType", "Resource")
PER_TEAM: Final = ("Team",)
PER_QUANTILE: Final = ("Team", "Quantile")
PER_PREEMPTION: Final = ("Team", "Reason", "PreemptingTeam")
PER_SEVERITY: Final = ("Severity",)
WHOLE_CLUSTER: Final = ()

Property = str | int | float | bool
Together = Literal["sum", "max", "left out"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric as it is documented, and as its values are checked."""

    name: str
    unit: str
    dimensions: tuple[str, ...]
    meaning: str
    source: str
    together: Together = "sum"
    """What stands for several teams in one series (`taskgov.services.series_rule`)."""

    def of(self, value: float, *dimensions: str, **properties: Property) -> Measurement:
        """Return a value; `dimensions` are the values in the order in which the metric names them.

        Raises `ValueError` when their number is not the metric's.
        """
        return self.at(value, dict(zip(self.dimensions, dimensions, strict=True)), properties)

    def at(self, value: float, dimensions: Mapping[str, str], properties: Mapping[str, Property]) -> Measurement:
        """Return a value with these dimensions, which other values may share, and properties."""
        return Measurement(self.name, float(value), self.unit, dimensions, properties)
