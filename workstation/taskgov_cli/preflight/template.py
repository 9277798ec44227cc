"""What does `template.yaml` create with these parameters? Read without the SAM translator, which is an extra.

Only what `needs` requests is resolved: conditions and a few functions. Resources that do not exist yet get stand-ins of
the right form, with which definitions of state machines can be checked.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import yaml

from taskgov.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from yaml import SafeLoader as _Safe
else:
    _Safe = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, where it was built

FUNCTION: Final = "AWS::Serverless::Function"
MACHINE: Final = "AWS::StepFunctions::StateMachine"
NO_VALUE: Final = object()
"""What `!Ref AWS::NoValue` is."""
_FUNCTIONS: Final = frozenset({"Ref", "Fn::If", "Fn::GetAtt", "Fn::Sub", "Fn::Join"})
_ARN_OF: Final = {
    FUNCTION: "lambda:{place}:function:{name}:live",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
    "AWS::SQS::Queue": "sqs:{place}:{name}",
    "AWS::SNS::Topic": "sns:{place}:{name}",
}
"""Types of which the definitions of state machines need an ARN; any other stands in by its name."""


class _Loader(_Safe):
    """Reads CloudFormation's short forms (`!Ref x`) as its long ones (`{"Ref": x}`)."""


def _long_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> Any:
    if isinstance(node, yaml.ScalarNode):
        value: Any = loader.construct_scalar(node)
    elif isinstance(node, yaml.SequenceNode):
        value = loader.construct_sequence(node, deep=True)
    else:
        assert isinstance(node, yaml.MappingNode)
        value = loader.construct_mapping(node, deep=True)
    if suffix == "GetAtt" and isinstance(value, str):
        value = value.split(".")
    return {suffix if suffix in {"Ref", "Condition"} else f"Fn::{suffix}": value}


_Loader.add_multi_constructor("!", _long_form)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the stack will be."""

    partition: str
    region: str
    account: str


@dataclass(frozen=True, slots=True)
class Template:
    """A template with its parameters, as it would be deployed at a place."""

    folder: Path
    raw: Mapping[str, Any]
    parameters: Mapping[str, str]
    place: Place

    def resources(self, *kinds: str) -> dict[str, Mapping[str, Any]]:
        """Return the properties of the resources of these types that would be created, by logical id, resolved."""
        return {
            name: self.resolved(resource.get("Properties", {}))
            for name, resource in self.raw["Resources"].items()
            if resource["Type"] in kinds and self._is_made(resource)
        }

    def types(self) -> frozenset[str]:
        """Return the types of the resources that would be created."""
        return frozenset(res["Type"] for res in self.raw["Resources"].values() if self._is_made(res))

    def machines(self) -> dict[str, dict[str, Any]]:
        """Return the definition of each state machine by logical id, its substitutions made as CloudFormation does."""
        return {
            name: _definition(self.folder / properties["DefinitionS3Location"], properties["DefinitionSubstitutions"])
            for name, properties in self.resources(MACHINE).items()
        }

    def condition(self, name: str) -> bool:
        """Return whether a condition of the template holds."""
        return self._holds(self.raw["Conditions"][name])

    def resolved(self, value: Any) -> Any:
        """Return a value with its intrinsic functions resolved; members without a value are left out."""
        if isinstance(value, list):
            return [found for found in map(self.resolved, value) if found is not NO_VALUE]
        if not isinstance(value, dict):
            return value
        if len(value) == 1 and next(iter(value)) in _FUNCTIONS:
            return self._result(value)
        resolved = {key: self.resolved(inner) for key, inner in value.items()}
        return {key: inner for key, inner in resolved.items() if inner is not NO_VALUE}

    def _result(self, function: Mapping[str, Any]) -> Any:
        match function:
            case {"Ref": str(name)}:
                return self._ref(name)
            case {"Fn::If": [name, yes, no]}:
                return self.resolved(yes if self.condition(name) else no)
            case {"Fn::GetAtt": [name, attribute]}:
                return self._stand_in(name) if attribute == "Arn" else name
            case {"Fn::Sub": str(text)}:
                return re.sub(r"\$\{([A-Za-z0-9:.]+)\}", lambda found: str(self._ref(found[1])), text)
            case {"Fn::Join": [separator, parts]}:
                joined = self.resolved(parts)
                return separator.join(joined if isinstance(joined, list) else [str(joined)])
            case _:
                raise InvalidRequestError(f"the template has a function of an unknown form: {json.dumps(function)}")

    def _is_made(self, resource: Mapping[str, Any]) -> bool:
        return "Condition" not in resource or self.condition(resource["Condition"])

    def _holds(self, condition: Any) -> bool:
        match condition:
            case {"Condition": name}:
                return self.condition(name)
            case {"Fn::Not": [inner]}:
                return not self._holds(inner)
            case {"Fn::And": list(inner)}:
                return all(map(self._holds, inner))
            case {"Fn::Or": list(inner)}:
                return any(map(self._holds, inner))
            case {"Fn::Equals": [left, right]}:
                return str(self.resolved(left)) == str(self.resolved(right))
            case _:
                raise InvalidRequestError(f"the template has a condition of an unknown form: {json.dumps(condition)}")

    def _ref(self, name: str) -> Any:
        name = name.partition(".")[0]  # SAM's `Function.Alias`; an attribute in `Fn::Sub`
        pseudo = {
            "AWS::NoValue": NO_VALUE,
            "AWS::Partition": self.place.partition,
            "AWS::Region": self.place.region,
            "AWS::AccountId": self.place.account,
            "AWS::StackName": "taskgov",
        }
        if name in pseudo:
            return pseudo[name]
        return self.parameters[name] if name in self.parameters else self._stand_in(name)

    def _stand_in(self, logical_id: str) -> str:
        form = _ARN_OF.get(self.raw["Resources"].get(logical_id, {}).get("Type", ""))
        if form is None:
            return logical_id.lower()
        place = f"{self.place.region}:{self.place.account}"
        return f"arn:{self.place.partition}:" + form.format(place=place, account=self.place.account, name=logical_id)


def read_template(path: Path, given: Mapping[str, str], place: Place) -> Template:
    """Return the template with its defaults and what is given. Raises InvalidRequestError for what does not fit."""
    try:
        raw = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise InvalidRequestError(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, dict) or not {"Parameters", "Resources", "Conditions"} <= raw.keys():
        raise InvalidRequestError(f"{path} is not taskgov's template")
    problems = [text for name, value in given.items() if (text := _problem(name, value, raw["Parameters"]))]
    if problems:
        raise InvalidRequestError("; ".join(problems))
    defaults = {name: str(about["Default"]) for name, about in raw["Parameters"].items()}
    return Template(path.parent, raw, {**defaults, **given}, place)


def _problem(name: str, value: str, parameters: Mapping[str, Any]) -> str:
    """Return why CloudFormation would refuse a parameter, if it would."""
    about = parameters.get(name)
    if about is None:
        return f"the template has no parameter {name}"
    allowed = [str(choice) for choice in about.get("AllowedValues", ())]
    if allowed and value not in allowed:
        return f"{name} is {value}, but must be one of {', '.join(allowed)}"
    if not re.fullmatch(about.get("AllowedPattern", ".*"), value):
        return f"{name} is {value}, but must match {about['AllowedPattern']}"
    if about["Type"] != "Number":
        return ""
    if not re.fullmatch(r"-?\d+", value):
        return f"{name} is {value}, but must be a whole number"
    least, most = about.get("MinValue"), about.get("MaxValue")
    fits = (least is None or int(value) >= least) and (most is None or int(value) <= most)
    return "" if fits else f"{name} is {value}, but must be between {least} and {most}"


def _definition(path: Path, substitutions: Mapping[str, Any]) -> dict[str, Any]:
    text = path.read_text(encoding="utf-8")
    for name, value in substitutions.items():
        text = text.replace(f"${{{name}}}", str(value))
    definition: dict[str, Any] = _Safe(text).get_single_data()
    return definition
