# ruff: noqa: N815 - the fields have the API's own names
"""The form of the objects that decisions read, Kubernetes' and SageMaker's: the fields they use, with their types.

The API server checks its objects against the same schemas, so that an object of another form is damage, or of a version
that this release does not know. `fault_of` finds it before anything reads the object. What no decision uses may have
any form.
"""

from collections.abc import Mapping
from typing import Final

from pydantic import ValidationError

from taskgov.scheduling.field_forms import (
    Amounts,
    ConditionForm,
    Count,
    MetadataForm,
    Name,
    ObjectForm,
    TaintForm,
    Text,
)
from taskgov.scheduling.kueue_forms import DEEPEST, FORMS, is_deep, place_of
from taskgov.scheduling.pod_forms import have_form
from taskgov.scheduling.shapes import shape_of_pods
from taskgov.scheduling.workload_forms import BesidesPodsForm
from taskgov.snapshot.unreadable import CLUSTER_NODE, INSTANCE_GROUP

UNTRIMMED: Final = "taskgov.untrimmed"
"""The field of an object that could not even be trimmed: why."""


class _NodeSpec(ObjectForm):
    taints: list[TaintForm] | None = None
    unschedulable: bool | None = None
    providerID: Text = None


class _NodeStatus(ObjectForm):
    conditions: list[ConditionForm] | None = None
    allocatable: Amounts = None


class _Node(ObjectForm):
    metadata: MetadataForm
    spec: _NodeSpec | None = None
    status: _NodeStatus | None = None


class _InstanceStatus(ObjectForm):
    Status: Name


class _ClusterNode(ObjectForm):
    """A ClusterNodeSummary of ListClusterNodes."""

    InstanceId: Name
    InstanceGroupName: Name
    InstanceType: Name
    InstanceStatus: _InstanceStatus
    PrivateDnsHostname: Text = None


class _TypeDetails(ObjectForm):
    InstanceType: Text = None
    ThreadsPerCore: Count | None = None


class _InstanceGroup(_TypeDetails):
    """An instance group of DescribeCluster."""

    InstanceGroupName: Name
    InstanceTypeDetails: list[_TypeDetails] | None = None
    CurrentCount: Count | None = None
    TargetCount: Count | None = None
    TrainingPlanArn: Text = None


_FORMS: Final[Mapping[str, type[ObjectForm]]] = {
    **FORMS,
    CLUSTER_NODE: _ClusterNode,
    INSTANCE_GROUP: _InstanceGroup,
    "Node": _Node,
}


def fault_of(kind: str, item: object, pods: bytes | None = None) -> str | None:
    """Return where an object differs from the form of its kind, and how; None when decisions can read it.

    `pods` is the shape of the pod sets of a Workload, where it was computed before
    (`taskgov.snapshot.readable.pod_shapes`).

    Example:
        >>> fault_of("Node", {"metadata": {"name": "n"}, "status": {"allocatable": {"cpu": "many"}}})
        "status.allocatable.cpu: Value error, 'many' is not a Kubernetes quantity"

    """
    if isinstance(item, Mapping) and UNTRIMMED in item:
        return str(item[UNTRIMMED])
    form = _FORMS[kind]
    if kind == "Workload" and (shape := pods or shape_of_pods(item)) and have_form(shape):
        form = BesidesPodsForm
    if form.is_plain(item):
        return None
    if is_deep(item):
        return f"it is nested deeper than {DEEPEST} levels"
    try:
        form.check(item)
    except ValidationError as error:
        return first_fault(error)
    except (ArithmeticError, RecursionError) as error:
        return type(error).__name__
    return None


def first_fault(error: ValidationError) -> str:
    """Return where a form is first broken, and how, without the value."""
    first = error.errors(include_url=False, include_input=False)[0]
    place = place_of(first["loc"])
    return f"{place}: {first['msg']}" if place else str(first["msg"])
