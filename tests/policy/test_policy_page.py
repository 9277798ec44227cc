"""`docs/policy.md` says what is true: its example is a good document, and no field is left out."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from taskgov.policy.document import PolicyDocument
from taskgov.policy.parse import parse_policy

PAGE = (Path(__file__).parents[2] / "docs" / "policy.md").read_text()

BROKEN = """
apiVersion: taskgov/v1
cluster: {name: a, arn: "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}
teams:
  - {name: a, share: [{instanceType: ml.g5.xlarge, percent: 1}]}
  - {name: b, share: [{instanceType: ml.g5.xlarge, percent: 1}]}
  - {name: c, quota: {ComputeQuotaResources: [{InstanceType: g5.8xlarge, Count: 1}]}}
"""


def example() -> str:
    found = re.search(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    assert found is not None
    return found[1]


def test_the_example_is_a_good_document_without_warnings() -> None:
    result = parse_policy(example())

    assert [str(one) for one in result.violations] == []
    assert result.warnings == ()
    assert result.document is not None


def test_the_message_that_is_shown_is_the_message_that_is_given() -> None:
    shown = re.search(r"```\n(teams.*?)\n```", PAGE, re.DOTALL)
    assert shown is not None
    assert [str(one) for one in parse_policy(BROKEN).violations] == [shown[1]]


def test_every_field_is_in_the_example_or_the_tables() -> None:
    unnamed = {name for name in field_names(PolicyDocument) if not re.search(rf"`\.?(\w+\.)*{name}\b", PAGE)}

    assert unnamed - set(re.findall(r"^([a-zA-Z]+):", example(), re.MULTILINE)) == set()


def field_names(annotation: object) -> Iterator[str]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            yield field.alias or name
            yield from field_names(field.annotation)
    for inner in get_args(annotation):
        yield from field_names(inner)
