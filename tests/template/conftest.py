"""The template as CloudFormation sees it, and the few questions that every test here asks of it."""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from taskgov_embedded.cloudformation import updates
from taskgov_embedded.cloudformation.template import Translated, translate

ROOT = Path(__file__).parents[2]
Properties = dict[str, Any]


@cache
def load() -> Translated:
    """Return the translated template; tests read it and never change it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")  # parameters of tests are made before any fixture
        return translate(ROOT / "template.yaml", {})


@pytest.fixture(scope="session")
def stack() -> Translated:
    return load()


ALIAS = "Aliaslive"
"""What the translator puts behind a function's logical id to name its alias, which is how the function is called."""


def references(node: Any) -> set[str]:
    """Return every logical id and parameter that a value refers to; a function's alias counts as the function."""
    return {name.removesuffix(ALIAS) for name in updates.references(node)}


def statements(role: Mapping[str, Any]) -> Iterator[Properties]:
    """Yield every statement of a role's policies, also of those attached to it, with Action and Resource as lists.

    A statement on condition counts as there.
    """
    attached = [
        one
        for one in load().resources_of("AWS::IAM::Policy").values()
        if any(role == load().resources_of("AWS::IAM::Role")[name] for name in references(one["Roles"]))
    ]
    for policy in (*role.get("Policies", ()), *attached):
        for each in policy["PolicyDocument"]["Statement"]:
            statement = each["Fn::If"][1] if "Fn::If" in each else each
            yield statement | {key: listed(statement[key]) for key in ("Action", "Resource")}


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def role_of(stack: Translated, holder: Properties, key: str = "Role") -> Properties:
    """Return the properties of the role that a function or state machine has."""
    (name,) = references(holder[key])
    return stack.resources_of("AWS::IAM::Role")[name]


def definition_of(machine: Properties) -> Properties:
    """Return the definition of a state machine, its placeholders still in it."""
    definition: Properties = json.loads(machine["DefinitionString"])
    return definition
