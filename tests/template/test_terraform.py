"""`examples/terraform` deploys this template: every name in it is one of the template's, and what it needs is given."""

import re
from pathlib import Path
from typing import Any

import hcl2
import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples" / "terraform").glob("*.tf"))
PAGE = (ROOT / "docs" / "terraform.md").read_text()


class Template(yaml.SafeLoader):
    """Reads the template without minding CloudFormation's tags."""


Template.add_multi_constructor("!", lambda _loader, _suffix, _node: None)
TEMPLATE: dict[str, Any] = yaml.load((ROOT / "template.yaml").read_text(), Template)  # noqa: S506 - a safe loader


def read(text: str) -> dict[str, Any]:
    """Return a file's blocks; a text is without the quotes that it has there."""
    found: dict[str, Any] = plain(hcl2.loads(text))
    return found


def plain(value: Any) -> Any:
    match value:
        case dict():
            return {plain(name): plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case str():
            return value[1:-1] if value.startswith('"') and value.endswith('"') else value
        case _:
            return value


def blocks(kind: str) -> dict[str, Any]:
    """Return the blocks of all files by their last label."""
    found: dict[str, Any] = {}
    for file in FILES:
        for outer in read(file.read_text()).get(kind, []):
            label, block = "", outer
            while len(block) == 1 and isinstance(next(iter(block.values())), dict):
                ((label, block),) = block.items()
            found[label] = block
    return found


def test_the_stack_gets_parameters_of_the_template_and_the_rights_that_it_needs() -> None:
    stack = blocks("resource")["taskgov"]
    given = set(re.findall(r"(\w+)\s*[:=]\s*(?:\$\{)?var\.", str(stack["parameters"])))
    assert given == {"ApplyMode", "AlarmEmail"}
    assert given <= TEMPLATE["Parameters"].keys()
    assert stack["capabilities"] == ["CAPABILITY_IAM", "CAPABILITY_AUTO_EXPAND"]


def test_the_defaults_are_those_of_the_template() -> None:
    variables = blocks("variable")
    parameters = TEMPLATE["Parameters"]
    assert variables["apply_mode"]["default"] == parameters["ApplyMode"]["Default"]
    assert variables["alarm_email"]["default"] == parameters["AlarmEmail"]["Default"]
    for mode in parameters["ApplyMode"]["AllowedValues"]:
        assert mode in str(variables["apply_mode"]["validation"])


def test_every_variable_and_resource_that_is_referred_to_is_there() -> None:
    text = "\n".join(file.read_text() for file in FILES)
    assert set(re.findall(r"\bvar\.(\w+)", text)) == blocks("variable").keys()
    assert set(re.findall(r"\baws_(?:s3_object|cloudformation_stack)\.(\w+)", text)) <= blocks("resource").keys()
    assert set(re.findall(r"\bdata\.aws_\w+\.\w+", text)) == {"data.aws_region.current", "data.aws_partition.current"}


def test_the_outputs_are_those_of_the_stack() -> None:
    text = "\n".join(file.read_text() for file in FILES)
    named = set(re.findall(r'outputs\["(\w+)"\]', text))
    assert len(named) == len(blocks("output"))
    assert named <= TEMPLATE["Outputs"].keys()


@pytest.mark.parametrize("snippet", re.findall(r"```hcl\n(.*?)```", PAGE, re.DOTALL))
def test_what_the_page_has_one_write_can_be_parsed_and_ignores_what_taskgov_writes(snippet: str) -> None:
    assert read(snippet)["resource"]
    ignored = set(re.findall(r"ignore_changes = \[(.*?)\]", snippet))
    assert ignored == {"compute_quota_config, compute_quota_target", "scheduler_config"}
