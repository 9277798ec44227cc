"""Move an alias to the next version, as CodeDeploy does for Lambda: step by step, and back when an alarm rings.

`updates` calls it when a template that is deployed over another one changes an alias that has a deployment group.
Every call is made with the group's role. The steps are those of the predefined configurations, as in their names.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from taskgov_embedded.aws_api.wire import AwsError
from taskgov_embedded.functions.versions import name_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from taskgov_embedded.account import Account
    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.cloudformation.resources import Resolved
    from taskgov_embedded.functions.versions import Versions

WATCH_SECONDS = 60
"""How often alarms are polled between two steps (CodeDeploy says that it polls, not how often)."""


def steps(configuration: str) -> Iterator[tuple[float, int]]:
    """Yield (part of the calls that the new version gets, seconds until the next step).

    >>> list(steps("CodeDeployDefault.LambdaCanary10Percent5Minutes"))
    [(0.1, 300), (1.0, 0)]
    >>> list(steps("CodeDeployDefault.LambdaLinear50PercentEvery1Minute"))
    [(0.5, 60), (1.0, 0)]
    >>> list(steps("CodeDeployDefault.LambdaAllAtOnce"))
    [(1.0, 0)]
    """
    read = re.search(r"Lambda(Canary|Linear)(\d+)Percent(?:Every)?(\d+)Minutes?$", configuration)
    if read is None and not configuration.endswith("LambdaAllAtOnce"):
        raise ValueError(f"the embedded stack does not know the deployment configuration {configuration}")
    if read is not None:
        kind, percent, minutes = read[1], int(read[2]), int(read[3])
        for part in range(percent, 100, percent) if kind == "Linear" else (percent,):
            yield part / 100, minutes * 60
    yield 1.0, 0


class Deployments:
    """CodeDeploy and Lambda's aliases."""

    def __init__(self, account: Account, versions: Versions) -> None:
        self._account = account
        self._versions = versions
        account.requests.answer("lambda", "GetAlias", self._get_alias)
        account.requests.answer("lambda", "UpdateAlias", self._update_alias)
        account.requests.answer("lambda", "GetProvisionedConcurrencyConfig", _no_provisioned_concurrency)

    def move(self, alias: Resolved, group: Resolved) -> str | None:
        """Let time pass until the alias points to its new version; return why not, when it went back."""
        ended: list[str | None] = []
        task = self._account.turns.spawn(lambda: ended.append(self._deploy(alias, group)), f"deploy {alias.logical_id}")
        self._account.turns.run_until(task.done, max_seconds=24 * 3600)
        return ended[0]

    def _deploy(self, alias: Resolved, group: Resolved) -> str | None:
        properties = group.properties
        client = self._account.clients.of_role("lambda", properties["ServiceRoleArn"], "codedeploy")
        named = {"FunctionName": alias.properties["FunctionName"], "Name": alias.properties["Name"]}
        before, after = client.get_alias(**named)["FunctionVersion"], alias.properties["FunctionVersion"]
        self._look_for_provisioned_concurrency(client, named)
        for part, seconds in steps(properties["DeploymentConfigName"]):
            why = self._ringing(properties)
            if part < 1 and why is None:
                weights = {"AdditionalVersionWeights": {after: part}}
                client.update_alias(**named, FunctionVersion=before, RoutingConfig=weights)
                self._tell(alias, f"{part:.0%} of the calls to version {after}")
                why = self._watch(properties, seconds)
            if why is not None:
                client.update_alias(**named, FunctionVersion=before, RoutingConfig={"AdditionalVersionWeights": {}})
                self._tell(alias, f"back to version {before}: {why}")
                return why
        client.update_alias(**named, FunctionVersion=after, RoutingConfig={"AdditionalVersionWeights": {}})
        self._tell(alias, f"version {after}")
        return None

    def _watch(self, group: Mapping[str, Any], seconds: int) -> str | None:
        for _ in range(seconds // WATCH_SECONDS):
            self._account.turns.sleep(WATCH_SECONDS)
            why = self._ringing(group)
            if why is not None:
                return why
        return None

    def _ringing(self, group: Mapping[str, Any]) -> str | None:
        """Return which alarm of the group rings, if any."""
        alarms = [alarm["Name"] for alarm in group.get("AlarmConfiguration", {}).get("Alarms", [])]
        if not alarms:
            return None
        client = self._account.clients.of_role("cloudwatch", group["ServiceRoleArn"], "codedeploy")
        found = client.describe_alarms(AlarmNames=alarms)["MetricAlarms"]
        return next((f"alarm {alarm['AlarmName']} rings" for alarm in found if alarm["StateValue"] == "ALARM"), None)

    def _look_for_provisioned_concurrency(self, client: Any, named: Mapping[str, str]) -> None:
        try:
            client.get_provisioned_concurrency_config(FunctionName=named["FunctionName"], Qualifier=named["Name"])
        except client.exceptions.ProvisionedConcurrencyConfigNotFoundException:
            return

    def _tell(self, alias: Resolved, what: str) -> None:
        self._account.timeline.add("deployment", f"{alias.logical_id}: {what}")

    def _get_alias(self, call: Call) -> Mapping[str, Any]:
        name, alias = name_of(call.params["FunctionName"]), call.params["Name"]
        known = self._versions.alias(name, alias)
        if known is None:
            raise AwsError("ResourceNotFoundException", f"Cannot find alias arn: {name}:{alias}")
        arn = self._account.place.arn("lambda", f"function:{name}:{alias}")
        routing = {"AdditionalVersionWeights": dict(known.weights)}
        return {"AliasArn": arn, "Name": alias, "FunctionVersion": known.version, "RoutingConfig": routing}

    def _update_alias(self, call: Call) -> Mapping[str, Any]:
        weights = call.params.get("RoutingConfig", {}).get("AdditionalVersionWeights", {})
        name, alias = name_of(call.params["FunctionName"]), call.params["Name"]
        self._versions.point(name, alias, call.params["FunctionVersion"], weights)
        return self._get_alias(call)


def _no_provisioned_concurrency(call: Call) -> Mapping[str, Any]:
    raise AwsError(
        "ProvisionedConcurrencyConfigNotFoundException",
        f"No Provisioned Concurrency Config found for {call.params['FunctionName']}",
    )
