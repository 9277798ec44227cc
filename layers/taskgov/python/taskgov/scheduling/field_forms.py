# ruff: noqa: N815 - the fields have the API's own names
"""The forms of fields that many objects have: amounts, moments, names, metadata, conditions, taints, selectors."""

from functools import lru_cache
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from taskgov.quantities import CPU, parse
from taskgov.scheduling.instants import instant, moment
from taskgov.scheduling.matching import is_integer


@lru_cache(maxsize=4096)
def _amount(quantity: str | float) -> str | float:
    if parse(CPU, quantity) < 0:
        raise ValueError("an amount is not below 0")
    return quantity


@lru_cache(maxsize=4096)
def _moment(text: str) -> str:
    moment(instant(text))
    return text


Amount = Annotated[str | int | float, AfterValidator(_amount)]
Amounts = dict[str, Amount] | None
Labels = dict[str, str] | None
Moment = Annotated[str, AfterValidator(_moment)]
Name = Annotated[str, Field(min_length=1)]
Text = str | None
Count = Annotated[int, Field(ge=0, lt=2**31)]
"""Not below 0, and as long as Kubernetes' int32."""
Number = Annotated[int, Field(ge=-(2**31), lt=2**31)]


class ObjectForm(BaseModel):
    """The form of an object or of a part of it. Its validator is built when it is first used, with those of its parts.

    Validators of their own for all parts would double the time that this takes.
    """

    model_config = ConfigDict(defer_build=True)


class MetadataForm(ObjectForm):
    name: Name
    namespace: Text = None
    uid: Text = None
    labels: Labels = None
    annotations: Labels = None
    generation: int = 0
    creationTimestamp: Moment | None = None
    deletionTimestamp: Moment | None = None


class NamespacedForm(MetadataForm):
    namespace: Name


class OwnerForm(ObjectForm):
    """An owner of an object (`OwnerReference` of Kubernetes)."""

    name: str
    kind: str = ""
    uid: str = ""
    controller: bool | None = None


class OwnedForm(NamespacedForm):
    ownerReferences: list[OwnerForm] | None = None


class ConditionForm(ObjectForm):
    type: str
    status: str
    reason: Text = None
    message: Text = None
    lastTransitionTime: Moment | None = None


class TaintForm(ObjectForm):
    key: str
    value: str = ""
    effect: str


class FlavorTaintForm(ObjectForm):
    key: str
    value: Text = None
    effect: Text = None


class TolerationForm(ObjectForm):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None


class LabelRequirementForm(ObjectForm):
    """An expression of a label selector (`LabelSelectorRequirement` of Kubernetes)."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    values: list[str] | None = None


class NodeRequirementForm(ObjectForm):
    """An expression of a node affinity (`NodeSelectorRequirement` of Kubernetes)."""

    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] | None = None

    @model_validator(mode="after")
    def _compares_with_one_integer(self) -> Self:
        if self.operator in {"Gt", "Lt"} and [is_integer(value) for value in self.values or ()] != [True]:
            raise ValueError(f"{self.operator} compares with one integer")
        return self


class SelectorForm(ObjectForm):
    matchLabels: Labels = None
    matchExpressions: list[LabelRequirementForm] | None = None
