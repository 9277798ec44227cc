"""Where YAML's anchors and aliases may stand: in the template, which SAM CLI writes anew, and in no definition file."""

from pathlib import Path

import pytest
import yaml

from tests.support.tools import run_with_sam
from tests.template.conftest import ROOT

TEMPLATE = ROOT / "template.yaml"


def aliases(text: str) -> list[str]:
    return [str(event.anchor) for event in yaml.parse(text, yaml.SafeLoader) if isinstance(event, yaml.AliasEvent)]


WRITE_ANEW = """
import sys
from samcli.yamlhelper import yaml_dump, yaml_parse
text = sys.stdin.read()
written = yaml_dump(yaml_parse(text))
assert yaml_parse(written) == yaml_parse(text)
print(written)
"""


@pytest.mark.slow
def test_no_alias_of_the_template_is_left_in_what_sam_hands_to_cloudformation() -> None:
    """`sam build` and `sam deploy` read and write a template by these two functions."""
    text = TEMPLATE.read_text()
    written = run_with_sam(WRITE_ANEW, given=text)
    assert len(aliases(text)) > 50
    assert aliases(written) == []
    assert len(written) > len(text)


@pytest.mark.parametrize("path", sorted((ROOT / "statemachines").glob("*.asl.yaml")), ids=lambda path: path.name)
def test_no_definition_of_a_state_machine_has_an_alias(path: Path) -> None:
    """SAM CLI uploads these files as they are, and CloudFormation would take an alias for a text.

    It reads them with Jackson (DefinitionProcessor.java of aws-cloudformation-resource-providers-stepfunctions), which
    gives an alias as the name of its anchor; Step Functions then refuses the definition
    (aws-cloudformation/cfn-language-discussion#49).
    """
    assert aliases(path.read_text()) == []
