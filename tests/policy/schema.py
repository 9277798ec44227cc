"""The JSON Schema of the policy document, for editors and other programs; `docs/policy.schema.json` is its copy."""

import json
from typing import Any

from taskgov.hyperpod.model import ComputeQuotaTarget
from taskgov.policy.document import PolicyDocument

QUOTA = "ComputeQuotaConfig"
WEIGHT = "FairShareWeight"


def policy_schema() -> dict[str, Any]:
    """Return the schema: what each field may hold. Rules between fields are beyond it (`taskgov.policy.rules`)."""
    schema = PolicyDocument.model_json_schema(by_alias=True, mode="validation")
    definitions = schema["$defs"]
    for definition in definitions.values():
        if definition.get("type") == "object":
            definition.setdefault("additionalProperties", False)
    # A weight may stand in the quota, beside what it belongs to.
    weight = ComputeQuotaTarget.model_json_schema(by_alias=True)["properties"][WEIGHT]
    definitions[QUOTA]["properties"][WEIGHT] = weight
    title = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "taskgov governance policy"}
    return {**title, **{key: value for key, value in schema.items() if key != "title"}}


def schema_text() -> str:
    """Return the schema as it is published."""
    return json.dumps(policy_schema(), indent=2, ensure_ascii=False) + "\n"
