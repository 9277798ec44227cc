"""A lease that the document can never give is a warning of the document."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from taskgov.findings import Finding
from taskgov.policy.parse import parse_policy
from tests.policy.test_warnings import CLUSTER

G5, P5 = "ml.g5.8xlarge", "ml.p5.48xlarge"


def lease(count: int, **more: Any) -> dict[str, Any]:
    usual = {"to": "b", "from": "a", "instanceType": G5, "count": count, "reason": "a test"}
    return usual | {"start": "2026-11-20T08:00:00Z", "end": "2026-11-21T08:00:00Z"} | more


BACK = {"to": "a", "from": "b"}
GIVES_TWO = {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}]}
DONORS: Mapping[str, tuple[dict[str, Any], int | None]] = {
    "a fixed quota": ({"quota": GIVES_TWO}, 2),
    "nothing of the type": ({"quota": {"ComputeQuotaResources": [{"InstanceType": P5, "Count": 9}]}}, 0),
    "a share with a ceiling": ({"share": [{"instanceType": G5, "percent": 50, "ceiling": 2}]}, 2),
    "a share of what there is": ({"share": [{"instanceType": G5, "percent": 50}]}, None),
    "a family": ({"families": [{"family": "g5", "percent": 50}]}, None),
    "parts": ({"quota": {"ComputeQuotaResources": [{"InstanceType": G5, "Accelerators": 1}]}}, None),
}


@pytest.mark.parametrize("donor", DONORS)
def test_a_lease_of_more_than_the_donor_can_have_is_a_warning_with_the_figures(donor: str) -> None:
    given, has = DONORS[donor]
    found = [each for each in beyond([lease(3)], given) if each.code == "lease-beyond-donor"]
    said = [f"a has {has} ml.g5.8xlarge in the document, and cannot lend 3 to b."]
    assert [each.because for each in found] == ([] if has is None else said)
    if has is not None:
        assert [(each.subject, each.evidence["has"]) for each in found] == [("leases[0].count", has)]


@pytest.mark.parametrize(
    ("leases", "warned"),
    [
        ([lease(2)], []),
        ([lease(3, partial=True)], []),
        ([lease(3), lease(1, **BACK)], []),  # leased quota may be leased again
        ([lease(3), lease(1, **BACK, start="2026-11-19T07:00:00Z", end="2026-11-20T07:00:00Z")], [0]),  # too early
        ([lease(2), lease(9)], [1]),
    ],
)
def test_a_lease_that_may_be_given_is_not(leases: list[dict[str, Any]], warned: list[int]) -> None:
    found = [each.subject for each in beyond(leases, {"quota": GIVES_TWO}) if each.code == "lease-beyond-donor"]
    assert found == [f"leases[{number}].count" for number in warned]


def beyond(leases: list[dict[str, Any]], donor: dict[str, Any]) -> tuple[Finding, ...]:
    teams = [{"name": "a", **donor}, {"name": "b", "quota": GIVES_TWO}]
    document = {"apiVersion": "taskgov/v1", "cluster": CLUSTER, "teams": teams}
    parsed = parse_policy(yaml.safe_dump(document | {"leases": leases}).encode())
    assert parsed.document, parsed.violations
    return parsed.warnings
