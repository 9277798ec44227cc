"""What the account may use, as Lambda, Service Quotas and Step Functions report it before a deployment.

The values are AWS's documented defaults of an older account; a test changes them. Nothing enforces them here.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from moto.core.utils import get_service_model

from taskgov_embedded.aws_api import model_checks
from taskgov_embedded.stepfunctions.definitions import InvalidDefinitionError, check

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call

SERVICES: Final = {"events": "Amazon EventBridge", "scheduler": "EventBridge Scheduler", "states": "AWS Step Functions"}
DEFAULTS: Final = (
    ("events", "L-244521F2", "Number of rules", 300.0),
    ("events", "L-658A4FD9", "Event buses", 100.0),
    ("states", "L-00000001", "Registered state machines", 100_000.0),
    ("scheduler", "L-00000002", "Number of schedules", 10_000_000.0),
    ("scheduler", "L-00000003", "Number of schedule groups", 500.0),
)
"""Service, code, name and value; codes that are not published have stand-ins."""


class AccountLimits:
    """The limits of the account; a test sets other ones."""

    def __init__(self, account: Account) -> None:
        self.concurrency = 1000
        self.reserved = 0
        self.applied: dict[str, float] = {}
        """Quotas that somebody had raised, or AWS lowered, by code."""
        self.unknown_integrations: set[str] = set()
        """Integrations that Step Functions does not have in the Region, e.g. `aws-sdk:sagemaker:listClusters`."""
        self._place = account.place
        answers: dict[tuple[str, str], Callable[[Call], Mapping[str, Any]]] = {
            ("lambda", "GetAccountSettings"): self._settings,
            ("service-quotas", "ListServiceQuotas"): self._applied,
            ("service-quotas", "ListAWSDefaultServiceQuotas"): self._defaults,
            ("stepfunctions", "ValidateStateMachineDefinition"): self._validate,
        }
        for (service, operation), handler in answers.items():
            account.requests.answer(service, operation, _checked(service, operation, handler))

    def _settings(self, _: Call) -> Mapping[str, Any]:
        return {
            "AccountLimit": {
                "TotalCodeSize": 80_530_636_800,
                "CodeSizeUnzipped": 262_144_000,
                "CodeSizeZipped": 52_428_800,
                "ConcurrentExecutions": self.concurrency,
                "UnreservedConcurrentExecutions": self.concurrency - self.reserved,
            },
            "AccountUsage": {"TotalCodeSize": 0, "FunctionCount": 0},
        }

    def _defaults(self, call: Call) -> Mapping[str, Any]:
        return {"Quotas": [self._quota(*quota) for quota in DEFAULTS if quota[0] == call.params["ServiceCode"]]}

    def _applied(self, call: Call) -> Mapping[str, Any]:
        wanted = [quota for quota in DEFAULTS if quota[0] == call.params["ServiceCode"] and quota[1] in self.applied]
        return {"Quotas": [self._quota(*quota[:3], self.applied[quota[1]]) for quota in wanted]}

    def _quota(self, service: str, code: str, name: str, value: float) -> dict[str, Any]:
        return {
            "ServiceCode": service,
            "ServiceName": SERVICES[service],
            "QuotaArn": self._place.arn("servicequotas", f"{service}/{code}"),
            "QuotaCode": code,
            "QuotaName": name,
            "Value": value,
            "Unit": "None",
            "Adjustable": True,
            "GlobalQuota": False,
        }

    def _validate(self, call: Call) -> Mapping[str, Any]:
        problems = [
            f"the integration {name} is unknown" for name in self.unknown_integrations if name in str(call.params)
        ]
        try:
            check("the definition", json.loads(call.params["definition"]))
        except InvalidDefinitionError as error:
            problems.append(str(error))
        found = [{"severity": "ERROR", "code": "SCHEMA_VALIDATION_FAILED", "message": problem} for problem in problems]
        return {"result": "FAIL" if found else "OK", "diagnostics": found}


def _checked(
    service: str, operation: str, handler: Callable[[Call], Mapping[str, Any]]
) -> Callable[[Call], Mapping[str, Any]]:
    model = get_service_model(service).operation_model(operation)

    def answer(call: Call) -> Mapping[str, Any]:
        given = handler(call)
        model_checks.check_answer(operation, model.output_shape, given)
        return given

    return answer
