"""Where a deployed stack of taskgov keeps its things: the outputs of its CloudFormation stack."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov.adapters.errors import translated
from taskgov.errors import InvalidRequestError

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


DEFAULT_STACK: Final = "taskgov"


def stack_outputs(cloudformation: CloudFormationClient, stack: str, *needed: str) -> dict[str, str]:
    """Return a stack's outputs. Raises GovernanceError when there is none of this name, or it lacks what is needed."""
    with translated(
        f"describe stack {stack} (check --stack, the account and the Region; "
        "if there is no stack yet: sam build && sam deploy, docs/deploy.md)"
    ):
        found = cloudformation.describe_stacks(StackName=stack)["Stacks"][0]
    outputs = {output["OutputKey"]: output["OutputValue"] for output in found.get("Outputs", ())}
    missing = sorted(set(needed) - outputs.keys())
    if missing:
        raise InvalidRequestError(f"stack {stack} has no output {', '.join(missing)}: it is not taskgov's")
    return outputs
