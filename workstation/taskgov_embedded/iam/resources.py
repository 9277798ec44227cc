"""On which ARNs does an API call need its action? Parameters hold names rather than ARNs, each service in its own way.

A service that is not listed here is checked on `*`, which fails closed for a grant that is scoped to a resource.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.place import Place


def resources_of(service: str, operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """Return the ARNs that a call concerns; `*` where the service has none for it."""
    name_resources = _RESOURCES.get(service)
    return ("*",) if name_resources is None else name_resources(operation, params, place)


def _as_arn(value: str, made: str) -> str:
    return value if value.startswith("arn:") else made


def _dynamodb(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    table = params.get("TableName")
    if table is None:
        return ("*",)
    arn = _as_arn(table, place.arn("dynamodb", f"table/{table}"))
    return (f"{arn}/index/{params['IndexName']}",) if params.get("IndexName") else (arn,)


def _s3(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    bucket = params.get("Bucket")
    if bucket is None:
        return ("*",)
    arn = f"arn:{place.partition}:s3:::{bucket}"
    return (f"{arn}/{params['Key']}",) if params.get("Key") else (arn,)


def _sqs(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("QueueName") or params.get("QueueUrl", "").rsplit("/", 1)[-1]
    return (place.arn("sqs", name),) if name else ("*",)


def _sns(_operation: str, params: Mapping[str, Any], _place: Place) -> tuple[str, ...]:
    return (params.get("TopicArn") or params.get("TargetArn") or "*",)


def _lambda(operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """Name the function, with the version or alias that is called.

    For calls on an alias itself the reference names the function, and Lambda's own guide the alias: either will do.
    """
    if operation == "InvokeFunctionUrl":
        return (params["Arn"],)
    name = params.get("FunctionName")
    if not name:
        return ("*",)
    arn = _as_arn(name, place.arn("lambda", f"function:{name}"))
    if operation in {"GetAlias", "UpdateAlias"}:
        return (arn, f"{arn}:{params['Name']}")
    return (f"{arn}:{params['Qualifier']}" if "Qualifier" in params else arn,)


def _execute_api(_operation: str, params: Mapping[str, Any], _place: Place) -> tuple[str, ...]:
    return (params["Arn"],)


def _states(operation: str, params: Mapping[str, Any], _place: Place) -> tuple[str, ...]:
    if operation.startswith("SendTask"):
        return ("*",)  # documented: these three have no resource
    return (params.get("stateMachineArn") or params.get("executionArn") or "*",)


def _events(operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    if operation == "PutEvents":
        buses = dict.fromkeys(entry.get("EventBusName", "default") for entry in params["Entries"])
        return tuple(_as_arn(bus, place.arn("events", f"event-bus/{bus}")) for bus in buses)
    return (place.arn("events", f"rule/{params['Name']}"),) if "Name" in params else ("*",)


def _scheduler(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    if "Name" not in params:
        return ("*",)
    return (place.arn("scheduler", f"schedule/{params.get('GroupName', 'default')}/{params['Name']}"),)


_BY_ARN_OR_ID = {
    "ComputeQuotaId": "compute-quota",
    "ClusterSchedulerConfigId": "cluster-scheduler-config",
}


def _sagemaker(operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    """Name the cluster or the governance object; lists of an account need `*`.

    A Create is allowed by a grant on the cluster or on the kind of object: the reference lists both.
    """
    for key, kind in _BY_ARN_OR_ID.items():
        if key in params:
            return (place.arn("sagemaker", f"{kind}/{params[key]}"),)
    if "TrainingPlanName" in params:
        plan = params["TrainingPlanName"]
        return (_as_arn(plan, place.arn("sagemaker", f"training-plan/{plan}")),)
    if operation.startswith("Create") and "ClusterArn" in params:
        kind = "compute-quota" if "Quota" in operation else "cluster-scheduler-config"
        return (params["ClusterArn"], place.arn("sagemaker", f"{kind}/*"))
    if "ResourceArn" in params:
        return (params["ResourceArn"],)
    name = params.get("ClusterName")
    if name is None:
        return ("*",)
    return (_as_arn(name, place.cluster_arns.get(name, place.arn("sagemaker", f"cluster/{name}"))),)


def _cloudformation(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("StackName")
    return (_as_arn(name, place.stacks.get(name, place.arn("cloudformation", f"stack/{name}"))),) if name else ("*",)


def _eks(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    if "addonName" in params and "clusterName" in params:
        return (place.arn("eks", f"addon/{params['clusterName']}/{params['addonName']}/*"),)
    if "resourceArn" in params:
        return (params["resourceArn"],)
    name = params.get("name") or params.get("clusterName")
    return (place.arn("eks", f"cluster/{name}"),) if name else ("*",)


def _logs(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("logGroupName")
    return (place.arn("logs", f"log-group:{name}:*"),) if name else ("*",)


def _ssm(_operation: str, params: Mapping[str, Any], place: Place) -> tuple[str, ...]:
    name = params.get("Name")
    return (place.arn("ssm", f"parameter/{name.removeprefix('/')}"),) if name else ("*",)


_RESOURCES: dict[str, Callable[[str, Mapping[str, Any], Place], tuple[str, ...]]] = {
    "dynamodb": _dynamodb,
    "s3": _s3,
    "sqs": _sqs,
    "sns": _sns,
    "lambda": _lambda,
    "execute-api": _execute_api,
    "stepfunctions": _states,
    "events": _events,
    "scheduler": _scheduler,
    "sagemaker": _sagemaker,
    "eks": _eks,
    "cloudformation": _cloudformation,
    "logs": _logs,
    "ssm": _ssm,
}
