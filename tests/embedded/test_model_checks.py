from __future__ import annotations

from typing import Any

import pytest
from moto.core.utils import get_service_model

from taskgov_embedded.aws_api.model_checks import ShapeError, check_answer, matches_pattern, violations

CREATE = get_service_model("sagemaker").operation_model("CreateComputeQuota").input_shape
LIST = get_service_model("sagemaker").operation_model("ListComputeQuotas").output_shape
GOOD: dict[str, Any] = {
    "Name": "q",
    "ClusterArn": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl",
    "ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}]},
    "ComputeQuotaTarget": {"TeamName": "team-a"},
}


def test_a_good_request_has_no_violations() -> None:
    assert violations(CREATE, GOOD) == []


@pytest.mark.parametrize(
    ("change", "path", "rule"),
    [
        ({"Name": "-x"}, "'name'", "regular expression"),
        ({"Name": None}, "'name'", "must not be null"),
        ({"Description": "x" * 1025}, "'description'", "length less than or equal to 1024"),
        ({"Description": "bell \a"}, "'description'", "regular expression"),
        ({"ActivationState": "On"}, "'activationState'", "enum value set"),
        ({"ComputeQuotaTarget": {"TeamName": "t", "FairShareWeight": 101}}, "fairShareWeight", "equal to 100"),
        (
            {"ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "VCpu": -1}]}},
            "computeQuotaResources.1.member.vCpu",
            "greater than or equal to 0",
        ),
        (
            {"ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge"}] * 16}},
            "computeQuotaResources",
            "length less than or equal to 15",
        ),
        (
            {"ComputeQuotaConfig": {"ComputeQuotaResources": [{"InstanceType": "g5.8xlarge"}]}},
            "instanceType",
            "enum value set",
        ),
        (
            {"ComputeQuotaConfig": {"ResourceSharingConfig": {"Strategy": "Lend", "BorrowLimit": 10001}}},
            "borrowLimit",
            "equal to 10000",
        ),
    ],
    ids=str,
)
def test_a_limit_that_clients_leave_to_the_service(change: dict[str, Any], path: str, rule: str) -> None:
    (found,) = violations(CREATE, GOOD | change)
    assert path in found
    assert rule in found


def test_an_instance_type_of_tomorrow_is_taken_by_its_form() -> None:
    config = {"ComputeQuotaResources": [{"InstanceType": "ml.p9-x300.96xlarge", "Count": 1}]}
    assert violations(CREATE, GOOD | {"ComputeQuotaConfig": config}) == []


def test_an_answer_with_a_stranger_or_without_a_member_is_found() -> None:
    with pytest.raises(ShapeError, match="'Extra' is not a member"):
        check_answer("ListComputeQuotas", LIST, {"ComputeQuotaSummaries": [], "Extra": 1})
    with pytest.raises(ShapeError, match="must not be null"):
        check_answer("ListComputeQuotas", LIST, {"ComputeQuotaSummaries": [{"Name": "q"}]})
    with pytest.raises(ShapeError, match="where there is none"):
        check_answer("DeleteComputeQuota", None, {"Gone": True})


def test_unicode_classes_of_patterns() -> None:
    pattern = r"([\p{L}\p{Z}\p{N}_.:/=+\-@]*)"
    assert matches_pattern(pattern, "équipe 1/a-b")
    assert not matches_pattern(pattern, "a\tb")
