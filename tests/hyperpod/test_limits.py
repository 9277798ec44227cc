"""Our limits against botocore's service model: nothing is missed, nothing is invented."""

import types
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, Union, get_args, get_origin

import boto3
import pytest
from botocore.model import ListShape, Shape, StructureShape
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from taskgov.hyperpod.limits import (
    ENTITY_NAME,
    TEAM_NAME,
    Between,
    CheckLimits,
    InstanceTypeName,
    Length,
    OneOf,
    Pattern,
    matcher,
)
from taskgov.hyperpod.model import ApiModel, ClusterSchedulerConfig, ComputeQuota, ComputeQuotaResource
from tests.hyperpod.requests import REQUESTS

DIFFERENCES = {
    "InstanceType enum": "the list grows quickly: any name of the form ml.<family>.<size> is accepted",
    "ResourceSharingConfig required": "a Strategy that is not given is sent as LendAndBorrow, its documented default",
}
PLAIN_TYPES = {"string": str, "integer": int, "float": float}


@pytest.fixture(scope="module")
def service() -> Any:
    client = boto3.client("sagemaker", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    return client.meta.service_model


@pytest.mark.parametrize("operation", REQUESTS)
def test_requests_have_the_limits_of_the_service_model(service: Any, operation: Any) -> None:
    shape = service.operation_model(operation).input_shape

    differences = dict(compared(shape, REQUESTS[operation]))

    assert {key: value for key, value in differences.items() if key not in DIFFERENCES} == {}


def test_every_difference_that_is_stated_is_there(service: Any) -> None:
    shape = service.operation_model("CreateComputeQuota").input_shape

    assert set(dict(compared(shape, REQUESTS["CreateComputeQuota"]))) == set(DIFFERENCES)


@pytest.mark.parametrize(
    ("operation", "model"),
    [("DescribeComputeQuota", ComputeQuota), ("DescribeClusterSchedulerConfig", ClusterSchedulerConfig)],
)
def test_what_is_read_is_in_the_service_model(service: Any, operation: str, model: type[ApiModel]) -> None:
    members = service.operation_model(operation).output_shape.members

    own = {"unknown_members"}  # what the service model lacks
    assert {alias(name, model) for name in model.model_fields.keys() - own} <= set(members)


def compared(shape: StructureShape, model: type[ApiModel]) -> Iterator[tuple[str, str]]:
    """Yield `member what` -> difference, for a structure and everything in it."""
    fields = {alias(name, model): field for name, field in model.model_fields.items()}
    if set(fields) != set(shape.members):
        yield f"{shape.name} members", f"{set(shape.members) ^ set(fields)}"
    required = {name for name, field in fields.items() if field.is_required()}
    if required != set(shape.required_members):
        yield f"{shape.name} required", f"{set(shape.required_members) ^ required}"
    for name, member in shape.members.items():
        annotation = Annotated[fields[name].annotation, *fields[name].metadata] if fields[name].metadata else None
        yield from compared_member(name, member, annotation or fields[name].annotation)


def compared_member(name: str, shape: Shape, annotation: Any) -> Iterator[tuple[str, str]]:
    kind, marks = unwrapped(annotation)
    given = {key: value for key, value in shape.metadata.items() if key in {"min", "max", "pattern", "enum"}}
    ours = limits_of(kind, marks)
    for key in sorted(given.keys() | ours.keys()):
        if given.get(key) != ours.get(key):
            yield f"{name} {key}", f"model {given.get(key)}, ours {ours.get(key)}"
    if isinstance(shape, StructureShape):
        yield from compared(shape, kind)
    elif isinstance(shape, ListShape):
        assert get_origin(kind) is tuple
        yield from compared_member(name, shape.member, get_args(kind)[0])
    elif not issubclass(kind, PLAIN_TYPES[shape.type_name]):
        yield f"{name} type", f"model {shape.type_name}, ours {kind}"


def unwrapped(annotation: Any) -> tuple[Any, list[object]]:
    """Take off `| None` and `Annotated`, however they are nested."""
    if get_origin(annotation) is Annotated:
        kind, *marks = get_args(annotation)
        inner, more = unwrapped(kind)
        return inner, marks + more
    if get_origin(annotation) in (Union, types.UnionType):
        [kind] = [one for one in get_args(annotation) if one is not type(None)]
        return unwrapped(kind)
    return annotation, []


def limits_of(kind: Any, marks: list[object]) -> dict[str, Any]:
    limits: dict[str, Any] = {}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        limits["enum"] = [one.value for one in kind]
    for mark in marks:
        match mark:
            case Between(minimum, maximum) | Length(minimum, maximum):
                limits |= {"min": minimum, "max": maximum}
            case Pattern(pattern):
                limits["pattern"] = pattern
            case OneOf(choices):
                limits["enum"] = list(choices)
            case InstanceTypeName():
                pass
            case unknown:
                raise AssertionError(unknown)
    return limits


def alias(name: str, model: type[ApiModel]) -> str:
    return model.model_fields[name].alias or name


NAMES = st.text("ab0Z-_.", max_size=8)


@given(NAMES)
def test_the_safe_patterns_match_what_the_api_s_patterns_match(text: str) -> None:
    import re

    for pattern in (TEAM_NAME.pattern, ENTITY_NAME.pattern):
        assert matcher(pattern)(text) == (re.fullmatch(pattern, text) is not None)


def test_a_long_wrong_name_is_refused_at_once() -> None:
    assert not matcher(TEAM_NAME.pattern)("a" * 5_000 + "_")
    assert not matcher(ENTITY_NAME.pattern)("a" * 5_000 + "_")


def test_answers_of_the_service_are_read_whatever_their_limits() -> None:
    given = {"InstanceType": "ml.new.huge", "Count": 20_000_000, "AcceleratorPartition": {"Type": "mig-9", "Count": -1}}

    assert ComputeQuotaResource.model_validate(given).count == 20_000_000
    with pytest.raises(ValidationError, match="3 validation errors"):
        ComputeQuotaResource.model_validate(given, context=CheckLimits())


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -0.001, 10_000_000.5])
def test_no_number_outside_the_range_passes(number: float) -> None:
    with pytest.raises(ValidationError):
        ComputeQuotaResource.model_validate({"InstanceType": "ml.g5.xlarge", "VCpu": number}, context=CheckLimits())


def test_plain_ec2_names_pass_only_where_they_may() -> None:
    given = {"InstanceType": "g5.8xlarge", "Count": 1}

    read = ComputeQuotaResource.model_validate(given, context=CheckLimits(plain_instance_types=True))

    assert read.instance_type == "g5.8xlarge"
    with pytest.raises(ValidationError, match="must be an instance type such as"):
        ComputeQuotaResource.model_validate(given, context=CheckLimits())
