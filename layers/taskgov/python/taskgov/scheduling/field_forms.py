# ruff: noqa: N815 - the fields have the API's own names
"""The forms of fields that many objects have: amounts, moments, names, metadata, conditions, taints, selectors."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from taskgov.quantities import CPU, parse
from taskgov.scheduling.instants import instant, moment


def _amount(quantity: str | float) -> str | float:
    if parse(CPU, quantity) < 0:
        raise ValueError("an amount is not below 0")
    return quantity


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


class MetadataForm(BaseModel):
    name: Name
    namespace: Text = None
    uid: Text = None
    labels: Labels = None
    creationTimestamp: Moment | None = None
    deletionTimestamp: Moment | None = None


class NamespacedForm(MetadataForm):
    namespace: Name


class ConditionForm(BaseModel):
    type: str
    status: str
    reason: Text = None
    message: Text = None
    lastTransitionTime: Moment | None = None


class TaintForm(BaseModel):
    key: str
    value: str = ""
    effect: str


class FlavorTaintForm(BaseModel):
    key: str
    value: Text = None
    effect: Text = None


class TolerationForm(BaseModel):
    key: Text = None
    operator: Text = None
    value: Text = None
    effect: Text = None


class RequirementForm(BaseModel):
    key: str
    operator: str
    values: list[str] | None = None


class SelectorForm(BaseModel):
    matchLabels: Labels = None
    matchExpressions: list[RequirementForm] | None = None
