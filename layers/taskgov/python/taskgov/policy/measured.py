"""Shares and leases: what the policy document counts in instances or in parts of them."""

from enum import StrEnum
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Final, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic.alias_generators import to_camel

from taskgov.hyperpod.limits import MIG_PROFILES
from taskgov.policy.base import InstanceType, Moment, Percent, PolicyModel, Text, Whole

WHOLE_WITHIN: Final = Fraction(1, 10)
"""Percentages of a type whose sum is so near to 100 divide all of it: 3 x 33.33 is the whole."""


class Unit(StrEnum):
    """The unit of shares and leases. HyperPod completes a part of an instance by ratio."""

    INSTANCES = "instances"
    ACCELERATORS = "accelerators"
    PARTITION = "acceleratorPartition"
    VCPU = "vcpu"
    MEMORY = "memoryInGiB"


class Measured(PolicyModel):
    """What is counted in whole units of an instance type: instances, or parts of them."""

    later: ClassVar[frozenset[str]] = frozenset({"unit", "accelerator_partition_type"})
    """Fields that the grammar got later: left out of what is written where they say nothing, so that the digests of
    documents without them stay the same from version to version."""

    instance_type: InstanceType
    unit: Unit = Unit.INSTANCES
    accelerator_partition_type: Annotated[str, MIG_PROFILES] | None = None
    """The MIG profile, such as `mig-1g.5gb`; with unit `acceleratorPartition`, and only then."""

    @model_serializer(mode="wrap")
    def _without_what_says_nothing(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = handler(self)
        fields = type(self).model_fields
        silent = {name for name in self.later if getattr(self, name) == fields[name].default}
        return {key: value for key, value in written.items() if key not in silent | {to_camel(name) for name in silent}}

    @property
    def unit_name(self) -> str:
        """The unit as sentences say it: `instances`, `accelerators`, `vCPUs`, `GiB`, or the MIG profile."""
        said = {Unit.VCPU: "vCPUs", Unit.MEMORY: "GiB", Unit.PARTITION: self.accelerator_partition_type or ""}
        return said.get(self.unit, self.unit.value)

    @property
    def place(self) -> str:
        """The instance type, and the unit (or the MIG profile) where that is not whole instances."""
        unit = "" if self.unit is Unit.INSTANCES else self.accelerator_partition_type or self.unit.value
        return f"{self.instance_type} {unit}".rstrip()

    @classmethod
    def at(cls, place: str) -> "Measured":
        """Return what `place` stands for.

        Example:
            >>> Measured.at("ml.p5.48xlarge mig-1g.10gb").unit_name, Measured.at("ml.p5.48xlarge").unit_name
            ('mig-1g.10gb', 'instances')

        """
        instance_type, _, unit = place.partition(" ")
        if unit.startswith("mig-"):
            return cls(instance_type=instance_type, unit=Unit.PARTITION, accelerator_partition_type=unit)
        return cls(instance_type=instance_type, unit=Unit(unit or Unit.INSTANCES))


class Share(Measured):
    """A share of the healthy capacity of one instance type, within floor and ceiling, in whole units.

    It is either a percentage of the capacity, or a weight: weights divide what is left once fixed promises, percentages
    and quotas that are left alone have been served.
    """

    later: ClassVar[frozenset[str]] = Measured.later | {"weight"}

    percent: Percent | None = None
    weight: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    floor: Whole = 0
    ceiling: Whole | None = None

    @model_validator(mode="after")
    def _says_how_much(self) -> Self:
        if self.percent is None and self.weight is None:
            raise ValueError("needs percent or weight")
        return self


class Lease(Measured):
    """What one team (or the shared pool) has from another, from `start` until `end`; given back by itself."""

    later: ClassVar[frozenset[str]] = Measured.later | {"partial"}

    to: str
    from_: str = Field(alias="from")
    count: Annotated[int, Field(ge=1, le=10_000_000)]
    """In whole units."""
    start: Moment
    end: Moment
    reason: Text
    partial: bool = False
    """Where the donor cannot give all, it gives what it can; without it the lease is refused."""
