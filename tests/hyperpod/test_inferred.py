"""What is inferred of SageMaker and CloudTrail is spelled in one module, and everybody reads it there."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from taskgov.hyperpod import inferred
from taskgov.hyperpod.inferred import tool_behind

ROOT = Path(__file__).parents[2]
OWN = ROOT / "layers/taskgov/python/taskgov/hyperpod/inferred.py"
API_MEMBERS = (inferred.QUOTA_ID, inferred.POLICY_ID, "ComputeQuotaVersion", "ComputeQuotaConfig")
SPELLED = {
    *(inferred.spellings(member)[0] for member in API_MEMBERS),
    *inferred.CONFLICTS,
    inferred.LIMIT_REACHED,
    "cloudformation.amazonaws.com",
}


def texts(file: Path) -> Iterator[str]:
    """Yield every text of a module but its docstrings."""
    tree = ast.parse(file.read_text())
    said = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in said:
            yield node.value


def test_nothing_else_spells_what_is_inferred() -> None:
    folders = ("layers/taskgov/python", "functions", "workstation")
    found = {
        str(file.relative_to(ROOT)): spelled
        for folder in folders
        for file in (ROOT / folder).rglob("*.py")
        if file != OWN and (spelled := SPELLED & set(texts(file)))
    }
    assert found == {}


def test_the_state_machine_waits_as_the_module_says() -> None:
    states = yaml.safe_load((ROOT / "statemachines/reconcile.asl.yaml").read_text())["States"]
    (first, second), (third, fourth), (last, slowest) = inferred.LOOKS
    seconds = f"{{% $verifyTries < {first} ? {second} : $verifyTries < {third} ? {fourth} : {slowest} %}}"
    assert states["Wait to settle"]["Seconds"] == seconds
    again = states["Settled?"]["Choices"][0]["Condition"]
    assert re.findall(r"\$verifyTries < (\d+)", again) == [str(last)]


TERRAFORM = (
    "APN/1.0 HashiCorp/1.0 Terraform/1.9.5 (+https://www.terraform.io) terraform-provider-aws/5.70.0 "
    "(+https://registry.terraform.io/providers/hashicorp/aws) aws-sdk-go-v2/1.32.0 os/linux lang/go#1.23.1"
)
CDK_ROLE = "arn:aws:iam::111122223333:role/cdk-hnb659fds-cfn-exec-role-111122223333-us-east-1"
ADMIN = "arn:aws:iam::111122223333:role/PlatformAdmin"
CALLS = {
    "Terraform's provider": ((TERRAFORM, None, ADMIN), "Terraform"),
    "a stack": (("cloudformation.amazonaws.com", "cloudformation.amazonaws.com", ADMIN), "CloudFormation"),
    "a stack, where only the caller says so": ((None, "cloudformation.amazonaws.com", None), "CloudFormation"),
    "a stack of the CDK": (("cloudformation.amazonaws.com", None, CDK_ROLE), "CDK"),
    "the CDK's own call": (("aws-cdk/2.160.0 aws-sdk-js/3.600", None, ADMIN), "CDK"),
    "a person under a role named like the CDK's": (("aws-cli/2.31.0", None, CDK_ROLE), None),
    "a person in the console": (("AWS Internal", None, ADMIN), None),
    "the AWS CLI": (("aws-cli/2.31.0 md/awscrt#0.23 terraforming/1", None, ADMIN), None),
    "a call that says nothing": ((None, None, None), None),
}


@pytest.mark.parametrize(("call", "want"), CALLS.values(), ids=CALLS)
def test_a_tool_of_infrastructure_as_code_is_known_by_its_calls(
    call: tuple[str | None, str | None, str | None], want: str | None
) -> None:
    assert tool_behind(*call) == want
