import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from taskgov_cli.schema import ID, policy_schema, schema_text

PUBLISHED = Path(__file__).parents[2] / "docs" / "policy.schema.json"
UPDATE = "UPDATE_POLICY_SCHEMA"
DOCUMENT = """
apiVersion: taskgov/v1
cluster: {name: ml-cluster, arn: "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl"}
teams:
  - name: team-a
    quota: {ComputeQuotaResources: [{InstanceType: ml.g5.8xlarge, Count: 2}], FairShareWeight: 10}
"""


def test_the_published_schema_is_the_models() -> None:
    if os.environ.get(UPDATE):
        PUBLISHED.write_text(schema_text())

    assert PUBLISHED.read_text() == schema_text(), f"run once with {UPDATE}=1"


def a_document(**changes: Any) -> dict[str, Any]:
    return {**yaml.safe_load(DOCUMENT), **changes}


def test_a_good_document_fits_the_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(policy_schema())
    assert policy_schema()["$id"] == ID
    jsonschema.validate(a_document(), policy_schema())


@pytest.mark.parametrize(
    "changes",
    [
        {"cluster": {}},
        {"capacity": {"headroomPercent": 101}},
        {"teams": [{"name": "a", "quota": {"ComputeQuotaResources": [{"InstanceType": "ml.g5.xlarge", "Counts": 1}]}}]},
        {"teams": [{"name": "a", "fairShareWeight": 101}]},
        {"teams": [{"name": "a", "quota": {"FairShareWeight": 101}}]},
        {"schedulerConfig": {"PriorityClasses": [{"Name": "a", "Weight": 1}] * 11}},
        {"schedulerConfig": {"FairShare": "On"}},
    ],
)
def test_the_schema_has_the_limits_of_single_fields(changes: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(a_document(**changes), policy_schema())
