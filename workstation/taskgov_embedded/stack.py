"""The embedded stack: one emulated AWS account made from a SAM template, on a clock of its own.

`with Stack("template.yaml", {...}) as stack:` builds everything that the template says and nothing else. Events are put
in (`bus.publish`, or any boto3 client), time is moved (`run_until_quiet`, `advance`), and what happened is read back
(`timeline`, `calls`, `results`, or any boto3 client). One stack at a time is open in a process.
"""

from __future__ import annotations

import json
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import boto3
from moto import mock_aws
from moto.moto_api._internal import mock_random

from taskgov_embedded.account import Account
from taskgov_embedded.aws_api import caches
from taskgov_embedded.cloudformation.template import translate
from taskgov_embedded.cloudformation.updates import DeploymentFailedError, Updates
from taskgov_embedded.cloudtrail import CloudTrail
from taskgov_embedded.cloudwatch import emf
from taskgov_embedded.cloudwatch.alarms import TIMER, Alarms
from taskgov_embedded.ec2 import Ec2
from taskgov_embedded.eks import Eks
from taskgov_embedded.eventbridge.bus import Bus
from taskgov_embedded.eventbridge.object_events import ObjectEvents
from taskgov_embedded.eventbridge.schedules import Schedules
from taskgov_embedded.functions import process
from taskgov_embedded.functions.deployments import Deployments
from taskgov_embedded.functions.event_source_mappings import EventSourceMappings
from taskgov_embedded.functions.http_entry import HttpEntry
from taskgov_embedded.functions.invocations import Invocations
from taskgov_embedded.functions.runtime import Runtime
from taskgov_embedded.functions.warm import PURE_PACKAGES
from taskgov_embedded.iam import trust
from taskgov_embedded.iam.service import IamService
from taskgov_embedded.iam.sts import Sts
from taskgov_embedded.limits import AccountLimits
from taskgov_embedded.place import Place
from taskgov_embedded.sagemaker.service import SageMaker
from taskgov_embedded.stepfunctions import machine_roles
from taskgov_embedded.stepfunctions.executions import Executions
from taskgov_embedded.virtual_time import sleep
from taskgov_embedded.virtual_time.clock import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from taskgov_embedded.aws_api.aws_requests import Call
    from taskgov_embedded.cloudformation.resources import Resolved
    from taskgov_embedded.cloudformation.template import Translated
    from taskgov_embedded.functions.runtime import Result

ACCOUNT = "111122223333"
"""The account of AWS's documentation."""


class Stack:
    """An emulated account made from a template. Open it with `with`, or `open()` and `close()`."""

    _is_open: ClassVar[bool] = False

    def __init__(
        self,
        template: str | Path,
        parameters: Mapping[str, str] | None = None,
        clock: VirtualClock | None = None,
        *,
        region: str = "us-east-1",
        shared_packages: tuple[str, ...] = PURE_PACKAGES,
    ) -> None:
        self.parameters = dict(parameters or {})
        self.clock = clock or VirtualClock()
        self.place = Place(ACCOUNT, region)
        self.account = Account(self.place, self.clock)
        self.timeline = self.account.timeline
        self.faults = self.account.faults
        self.patches = self.account.patches
        self._path = Path(template).resolve()
        self._resources = self.account.resources
        self.requests = self.account.requests
        self._turns = self.account.turns
        self.runtime = Runtime(self.account, shared_packages)
        self._invocations = Invocations(self.account, self.runtime)
        self.entry = HttpEntry(self.account, self.runtime)
        self._updates = Updates(
            self.place,
            self._resources,
            lambda resource: self._invocations.take(resource, self._path.parent),
            Deployments(self.account, self.runtime.versions).move,
        )
        self.bus = Bus(self.account, self._invocations.invoke_later)
        self.executions = Executions(self.account, self.bus)
        self._event_source_mappings = EventSourceMappings(self.account, self.runtime)
        self.schedules = Schedules(self.account, self.bus)
        self.alarms = Alarms(self.account)
        self.sagemaker = SageMaker(self.account, self.bus)
        self.eks = Eks(self.account)
        self.ec2 = Ec2(self.account)
        Sts(self.account)
        IamService(self.account)
        CloudTrail(self.account)
        self.requests.answer("cloudformation", "DescribeStackResource", self._resources.describe)
        self.limits = AccountLimits(self.account)
        self._closing = ExitStack()
        self.translated: Translated

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *_about: object) -> None:
        self.close()

    def open(self) -> Self:
        """Build the account from the template; the process is on the stack's clock from here on."""
        if Stack._is_open:
            raise RuntimeError("one stack at a time: the clock, the environment and AWS are the whole process's")
        with ExitStack() as undo:
            Stack._is_open = True
            undo.callback(setattr, Stack, "_is_open", False)  # noqa: FBT003 setattr takes it so
            self._set_up(undo)
            self._build()
            self._closing = undo.pop_all()
        return self

    def close(self) -> None:
        """End what still waits and give the process back its clock, environment and AWS."""
        self._closing.close()

    def _set_up(self, undo: ExitStack) -> None:
        mock_random.seed(20261120)
        undo.enter_context(process.variables(process.settings_of_person()))
        undo.enter_context(mock_aws())
        undo.enter_context(process.variables({"AWS_DEFAULT_REGION": self.place.region, "MOTO_ACCOUNT_ID": ACCOUNT}))
        self.clock.install()
        undo.callback(self.clock.uninstall)
        undo.callback(self.patches.undo)
        for install in (
            caches.install,
            process.install,
            self.requests.install,
            self.entry.install,
            self._event_source_mappings.install,
            ObjectEvents(self.account, self.bus).install,
            emf.install,
            partial(sleep.install, self._turns),
        ):
            install(self.patches)
        undo.callback(self._turns.close)

    def _build(self) -> None:
        self.translated = translate(self._path, self.parameters)
        self._resources.create(self.translated, self.parameters)
        self._invocations.add_all(self._path.parent)
        self._event_source_mappings.add_mappings(self._resources)
        self.schedules.arm()
        self.schedules.arm_rules()
        self.alarms.start()
        self.requests.calls.clear()
        trust.check(self._resources, self.account.policies, self.requests.place)
        machine_roles.check(self._resources, self.requests)

    def update(self, template: str | Path, parameters: Mapping[str, str] | None = None) -> str | None:
        """Deploy another template, or the same one with other parameters, while everything else continues.

        Returns None; or why CodeDeploy took a new version back, and then everything is as it was before.
        """
        before = (self._path, self.parameters, self.translated)
        why = None
        try:
            self._bring_to(Path(template).resolve(), dict(parameters or {}))
        except DeploymentFailedError as failed:
            self._path, self.parameters, self.translated = before
            self._updates.update(self.translated, self.parameters, gradually=False)
            why = str(failed)
        self._follow_resources()
        trust.check(self._resources, self.account.policies, self.requests.place)
        machine_roles.check(self._resources, self.requests)
        return why

    def _bring_to(self, path: Path, parameters: dict[str, str]) -> None:
        self._path, self.parameters = path, parameters
        self.translated = translate(path, parameters)
        self.account.policies.forget()
        self._updates.update(self.translated, parameters)

    def uninstall(self) -> list[str]:
        """Delete the stack as `sam delete` does; return the logical ids of what is retained."""
        retained = self._updates.delete()
        self.runtime.versions.remove_all()
        self._follow_resources()
        return retained

    def _follow_resources(self) -> None:
        """Let permissions, event source mappings and schedules be what the resources say now."""
        self.account.policies.forget()
        self._resources.note_what_permissions_depend_on()
        self._event_source_mappings.add_mappings(self._resources)
        self.schedules.arm()

    # Time

    def run_until_quiet(self, max_virtual_seconds: float = 900) -> float:
        """Run until nothing is left to do within `max_virtual_seconds`, jumping over waits; returns the seconds passed.

        Recurring schedules do not fire here (they would never be quiet): see `advance`.
        """
        before = self.clock.now
        self._turns.run(max_virtual_seconds, recurring=False)
        return (self.clock.now - before).total_seconds()

    def advance(self, seconds: float, schedules: Collection[str] | None = None) -> None:
        """Let `seconds` pass, with everything that falls due in them, recurring schedules too.

        `schedules` names the logical ids of those that fire (all by default): a night with a job every minute is long.
        Alarms are evaluated with all schedules, or where `alarms` is among those that are named.
        """
        only = None if schedules is None else {TIMER if name == TIMER else self.physical(name) for name in schedules}
        self._turns.run(seconds, recurring=True, only=only)

    # Causes

    def invoke(self, logical_id: str, event: Any) -> Result:
        """Invoke a function of the template by its logical id, and run until it has answered."""
        answered: list[Result] = []
        task = self._turns.spawn(
            lambda: answered.append(self.runtime.invoke(self.physical(logical_id), event)), logical_id
        )
        self._turns.run_until(task.done, max_seconds=900)
        return answered[0]

    def start_execution(self, logical_id: str, data: Any = None, name: str | None = None) -> str:
        """Start a state machine of the template as a person would; returns the execution's ARN."""
        named = {} if name is None else {"name": name}
        started = self.client("stepfunctions").start_execution(
            stateMachineArn=self.physical(logical_id), input=json.dumps(data or {}), **named
        )
        arn: str = started["executionArn"]
        return arn

    def fire(self, schedule_logical_id: str) -> None:
        """Do what a schedule of the template does at its moment, now, with its role."""
        self.schedules.fire(self.schedules.named(self.physical(schedule_logical_id)))

    # What there is and what happened

    def client(self, service: str, person: str | None = None) -> Any:
        """Return a boto3 client of a person, whose calls are recorded and not checked against policies.

        `person` is the name of the user that CloudTrail shows; the operator when it is not given.
        """
        return self.account.clients.of_person(service, person)

    @contextmanager
    def as_person(self, person: str | None) -> Iterator[None]:
        """Let code that finds its credentials as a person's does be this user's; the operator's for None."""
        with process.variables({"AWS_ACCESS_KEY_ID": self.account.identities.key_of(person or "")}):
            boto3.setup_default_session()  # a command is a process of its own: it reads its credentials again
            try:
                yield
            finally:
                boto3.setup_default_session()

    def client_of(self, role_logical_id: str, service: str) -> Any:
        """Return a boto3 client of a role of the template, checked against its policies."""
        arn = f"arn:aws:iam::{self.place.account}:role/{self.physical(role_logical_id)}"
        return self.account.clients.of_role(service, arn, "person")

    def physical(self, logical_id: str) -> str:
        """Return what `Ref` gives for a resource: name, URL or ARN, by type."""
        return self._resources.physical(logical_id)

    def resolved(self, logical_id: str) -> Resolved:
        """Return a created resource with its resolved properties."""
        return self._resources.resolved[logical_id]

    @property
    def outputs(self) -> Mapping[str, str]:
        """The template's outputs."""
        return self._resources.outputs

    @property
    def calls(self) -> list[Call]:
        """Every AWS call since the stack was built: who, what, on which resource, when, and its error."""
        return self.requests.calls

    @property
    def results(self) -> list[Result]:
        """Every invocation: event, answer, printed lines, metrics."""
        return self.runtime.results

    def logs(self, logical_id: str) -> list[str]:
        """Return the lines that a function printed, over all invocations."""
        return [line for result in self.results if result.function == logical_id for line in result.log]
