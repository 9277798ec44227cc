"""Read an account before the first deployment. Every call only reads; each answer may fail on its own."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from taskgov.adapters.errors import translated
from taskgov.errors import InvalidRequestError, NotFoundError, UpstreamError
from taskgov.policy.backends import Backend
from taskgov_cli.doctor.network import read_network
from taskgov_cli.doctor.reading_aws import client, read
from taskgov_cli.preflight.facts import Account, Concurrency, Quota
from taskgov_cli.preflight.limits import LIMITS
from taskgov_cli.preflight.template import MACHINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_cli.preflight.limits import Limit
    from taskgov_cli.preflight.needs import Needs
    from taskgov_cli.preflight.template import Template

RIGHTS: Final = {
    "sts:GetCallerIdentity": "which account it is (needs no permission)",
    "cloudformation:DescribeStacks": "whether the stack is there already",
    "states:ValidateStateMachineDefinition": "whether Step Functions of the Region accepts the state machines",
    "lambda:GetAccountSettings": "concurrency and storage of functions",
    "servicequotas:ListServiceQuotas": "quotas with their present values",
    "servicequotas:ListAWSDefaultServiceQuotas": "quotas with their default values",
    "events:ListRules": "how many rules there are",
    "events:ListEventBuses": "how many buses there are",
    "scheduler:ListScheduleGroups": "how many schedule groups there are",
}
"""What the caller may do, and why; without one of them its row is unknown. All of it is on `*`."""
RIGHTS_OF: Final = {
    Backend.SAGEMAKER: {"sagemaker:ListClusters": "whether HyperPod answers in the Region"},
    Backend.KUEUE: {"eks:ListClusters": "whether EKS answers in the Region"},
}
RIGHTS_IN_VPC: Final = {
    "ec2:DescribeSubnets": "with `VpcSubnetIds`: the VPC",
    "ec2:DescribeVpcEndpoints": "with `VpcSubnetIds`: its endpoints",
    "ec2:DescribeRouteTables": "with `VpcSubnetIds`: its routes",
}
_COUNTED: Final[Mapping[str, tuple[str, str, str]]] = {
    "eventbridge-rules": ("events", "list_rules", "Rules"),
    "eventbridge-buses": ("events", "list_event_buses", "EventBuses"),
    "schedule-groups": ("scheduler", "list_schedule_groups", "ScheduleGroups"),
}


def rights_table() -> str:
    """Return the table of the documentation: what the caller needs to be allowed, and why."""
    of_backends = {
        action: f"{why} (`--backend {name}`)" for name, of in RIGHTS_OF.items() for action, why in of.items()
    }
    listed = RIGHTS | of_backends | RIGHTS_IN_VPC
    return "\n".join(
        ("| action | shows |", "| --- | --- |", *(f"| `{name}` | {why} |" for name, why in listed.items()))
    )


def read_account(template: Template, needs: Needs, backend: Backend, stack: str, say: Callable[[str], None]) -> Account:
    """Read everything that the checks decide on."""
    say("reading the account")
    identity = read(account_number)
    found_stack = read(partial(stack_status, stack))
    clusters = read(partial(count_clusters, backend))
    say("asking Step Functions about the state machines")
    machines, properties = template.machines(), template.resources(MACHINE)
    kinds = {name: properties[name].get("StateMachineType", "STANDARD") for name in machines}
    definitions = {name: read(partial(problems_of, found, kinds[name])) for name, found in machines.items()}
    say("reading quotas")
    return Account(
        identity=identity,
        stack=found_stack,
        clusters=clusters,
        definitions=definitions,
        concurrency=read(concurrency),
        quotas={name: read(partial(quota, name, limit)) for name, limit in LIMITS.items()},
        network=read(partial(_network, needs)),
    )


def account_number() -> str:
    """Return the number of the caller's account."""
    with translated("ask who is calling"):
        return str(client("sts").get_caller_identity()["Account"])


def stack_status(name: str) -> str | None:
    """Return the status of a stack, None where there is none of this name."""
    try:
        with translated(f"describe stack {name}"):
            return str(client("cloudformation").describe_stacks(StackName=name)["Stacks"][0]["StackStatus"])
    except NotFoundError:
        return None
    except InvalidRequestError as error:  # CloudFormation's ValidationError: "Stack with id NAME does not exist"
        if "does not exist" in str(error):
            return None
        raise


def count_clusters(backend: Backend) -> int:
    """Return how many clusters of a backend there are: HyperPod's, or EKS clusters."""
    service, member = ("sagemaker", "ClusterSummaries") if backend is Backend.SAGEMAKER else ("eks", "clusters")
    return _count(service, "list_clusters", member)


def problems_of(definition: Mapping[str, Any], kind: Literal["STANDARD", "EXPRESS"]) -> tuple[str, ...]:
    """Return what Step Functions of this Region has against a definition, as it would be deployed."""
    with translated("validate a state machine definition"):
        answer = client("stepfunctions").validate_state_machine_definition(
            definition=json.dumps(definition), type=kind, severity="ERROR"
        )
        return tuple(
            f"{problem.get('location', 'the machine')}: {problem['message']}"
            for problem in answer["diagnostics"]
            if problem["severity"] == "ERROR"
        )


def concurrency() -> Concurrency:
    """Return what the account may run and keep of functions in this Region."""
    with translated("get the settings of Lambda"):
        found = client("lambda").get_account_settings()
        limit, usage = found["AccountLimit"], found["AccountUsage"]
        return Concurrency(
            limit=limit["ConcurrentExecutions"],
            unreserved=limit["UnreservedConcurrentExecutions"],
            code_limit=limit["TotalCodeSize"],
            code_used=usage["TotalCodeSize"],
        )


def quota(name: str, limit: Limit) -> Quota:
    """Return a quota as it was raised, else its default; and what is in use, where it is counted."""
    values = {
        **_values("list_aws_default_service_quotas", limit),
        **_values("list_service_quotas", limit),
    }
    value = next((values[known] for known in limit.names if known in values), float(limit.default))
    return Quota(int(value), _count(*_COUNTED[name]) if name in _COUNTED else None)


def _values(operation: str, limit: Limit) -> dict[str, float]:
    """Return the values that one list of Service Quotas has, by code and by name."""
    with translated(f"list the quotas of {limit.service}"):
        pages = client("service-quotas").get_paginator(operation).paginate(ServiceCode=limit.service)
        found = [listed for page in pages for listed in page["Quotas"] if "Value" in listed]
    return {listed[key]: listed["Value"] for listed in found for key in ("QuotaName", "QuotaCode")}


def _count(service: str, operation: str, member: str) -> int:
    api = client(service)
    with translated(f"{operation.replace('_', ' ')} of {service}"):
        if api.can_paginate(operation):
            return sum(len(page[member]) for page in api.get_paginator(operation).paginate())
        answer = getattr(api, operation)()
        found = len(answer[member])
        while answer.get("NextToken"):
            answer = getattr(api, operation)(NextToken=answer["NextToken"])
            found += len(answer[member])
        return found


def _network(needs: Needs) -> Any:
    if not needs.in_vpc:
        return None
    found = read_network(client("ec2"), needs.in_vpc)
    if not found.vpc:
        raise UpstreamError(f"no VPC has the subnets {', '.join(needs.in_vpc)}")
    return found
