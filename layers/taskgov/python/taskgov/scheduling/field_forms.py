# ruff: noqa: N815 - the fields have the API's own names
"""The forms of fields that many objects have: amounts, moments, names, metadata, conditions, taints, selectors."""

from functools import lru_cache
from typing import Annotated, Any, Final, Literal, get_type_hints

from pydantic import AfterValidator, Field, GetCoreSchemaHandler, TypeAdapter
from pydantic_core import CoreSchema, SchemaValidator, core_schema

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


MAY_BE_MISSING: Final[Any] = None
"""The default of a field that may be missing, but is not null."""


class ObjectForm:
    """The form of an object or of a part of it: its fields with their types; those with a default may be missing.

    Objects are checked and not built: models of pydantic take twice the time.
    """

    @classmethod
    def check(cls, item: object) -> None:
        """Raise `ValidationError` for an item of another form."""
        _adapter_of(cls).validator.validate_python(item, strict=True)

    @classmethod
    def is_plain(cls, item: object) -> bool:
        """Return whether an item has this form, and its further fields are scalars: its form bounds its depth.

        Most items are plain, and to find that takes half the time of a search for what is nested too deep.
        """
        if cls not in _PLAIN:
            _PLAIN[cls] = SchemaValidator(_plain(_adapter_of(cls).core_schema))
        try:
            return _PLAIN[cls].isinstance_python(item, strict=True)
        except (ArithmeticError, RecursionError):
            return False

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Say how pydantic checks it."""
        kinds = get_type_hints(cls, include_extras=True)
        defined_by = {name: part for part in reversed(cls.__mro__) for name in vars(part).get("__annotations__", ())}
        fields = {
            name: core_schema.typed_dict_field(handler.generate_schema(kinds[name]), required=name not in vars(part))
            for name, part in defined_by.items()
        }
        return core_schema.typed_dict_schema(fields)


_ADAPTERS: Final[dict[type[ObjectForm], TypeAdapter[Any]]] = {}
_PLAIN: Final[dict[type[ObjectForm], SchemaValidator]] = {}
"""Both are made when a form is first used."""


def _adapter_of(form: type[ObjectForm]) -> TypeAdapter[Any]:
    if form not in _ADAPTERS:
        _ADAPTERS[form] = TypeAdapter(form)
    return _ADAPTERS[form]


_SCALAR: Final = core_schema.is_instance_schema((str, int, float, bool, type(None)))


def _plain(part: Any) -> Any:
    """Return a part of a schema in which further fields of objects are scalars."""
    if isinstance(part, list):
        return [_plain(element) for element in part]
    if not isinstance(part, dict):
        return part
    further = {"extra_behavior": "allow", "extras_schema": _SCALAR} if part.get("type") == "typed-dict" else {}
    return {**{name: _plain(value) for name, value in part.items()}, **further}


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


class _NodeRequirement(ObjectForm):
    key: str
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]
    values: list[str] | None = None


def _compares_with_one_integer(requirement: dict[str, Any]) -> dict[str, Any]:
    operator, values = requirement["operator"], requirement.get("values") or ()
    if operator in {"Gt", "Lt"} and [is_integer(value) for value in values] != [True]:
        raise ValueError(f"{operator} compares with one integer")
    return requirement


NodeRequirementForm = Annotated[_NodeRequirement, AfterValidator(_compares_with_one_integer)]
"""An expression of a node affinity (`NodeSelectorRequirement` of Kubernetes)."""


class SelectorForm(ObjectForm):
    matchLabels: Labels = None
    matchExpressions: list[LabelRequirementForm] | None = None
