"""Every page, typed: its blocks in one shell from top to bottom, what stands in its sentences in a shell of its own.

What needs only files is typed by `test_offline.py`, where it stands in a sentence.

The account is the one that `taskgov local` serves. It is opened once for each mode; each page has a copy of it, in
a forked process. Skipped where the AWS CLI or kubectl is not installed. `docs/walkthroughs.md` is typed by
`tests/walkthroughs`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import time
from collections import ChainMap
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

import boto3
import pytest
import yaml

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ActivationState, ComputeQuotaConfig
from taskgov.kueue.record import Reading
from taskgov_embedded.cluster.access import READERS, WRITERS, read_rules
from taskgov_embedded.cluster.manifests import job_manifest
from taskgov_embedded.cluster.simulated import Pace, SimulatedCluster
from taskgov_embedded.deployable import RBAC, TEMPLATE
from taskgov_embedded.eks import TASK_GOVERNANCE_ADDON
from taskgov_embedded.server.account import DOCUMENTS, EKS_NAME, WORKERS, LocalAccount, workers_of
from taskgov_embedded.server.http_server import StackServer
from taskgov_embedded.stack import Stack
from taskgov_embedded.walkthrough.world import entries_of
from tests.advice.synthetic import MONDAY, two_teams, with_record
from tests.faults import forks
from tests.review.fake_forge import FakeForge, served
from tests.review.test_review import environment as pipeline
from tests.support.eks_token import token_for
from tests.typed.pages import ROOT, Command, commands
from tests.typed.tables import ACCOUNTS, ENDS, FILES, UNBUILT, UNSET, WATCHED, filled, is_on_files, why_not
from tests.typed.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from taskgov_embedded.cluster.api_server import RulesOf

Mode = Literal["plan", "apply", "bare", "plain-eks"]
OUT: Final = (
    "STACK=taskgov; out() { aws cloudformation describe-stacks --stack-name taskgov "
    "--query \"Stacks[0].Outputs[?OutputKey=='$1'].OutputValue\" --output text; }"
)
"""What docs/deploy.md defines, and other pages use."""
PLAN: Final = re.compile(r"\bPLAN_ID\b|\bplan-[0-9a-f]{16}\b")
PATIENCE_SECONDS: Final = 180
BARE: Final = "ml.g5.8xlarge=4"
ASKS: Final = {"guardrails": {"approveAbove": {"changedGpus": 0}}}


@dataclass(frozen=True)
class Sitting:
    """What is typed one after the other in one shell, on a copy of one account."""

    mode: Mode
    commands: tuple[Command, ...]


def mode_of(command: Command) -> Mode:
    """Return which account a command needs."""
    return next((mode for pattern, mode in ACCOUNTS.items() if re.match(pattern, command.text)), "plan")


def sittings() -> dict[str, list[Sitting]]:
    """Return of each page what is typed; what stands in the sentences of several pages is typed once."""
    found: dict[str, list[Sitting]] = {}
    seen: set[str] = set()
    for command in commands():
        if command.text.startswith("make ") or why_not(command.text) is not None:
            continue
        some, mode = found.setdefault(command.page, []), mode_of(command)
        if command.in_block:
            blocks = next((one for one in some if one.mode == mode and one.commands[0].in_block), Sitting(mode, ()))
            some[:] = [*(one for one in some if one is not blocks), Sitting(mode, (*blocks.commands, command))]
        elif not is_on_files(command.text) and command.text not in seen:
            seen.add(command.text)
            some.append(Sitting(mode, (command,)))
    return found


def typed_by_mode() -> list[tuple[Mode, str]]:
    """Return which pages are typed against which account, of which only one is open at a time."""
    modes: tuple[Mode, ...] = ("plan", "apply", "bare", "plain-eks")
    return [
        (mode, page) for mode in modes for page, some in sittings().items() if any(one.mode == mode for one in some)
    ]


class Person:
    """Somebody who types at a copy of an account."""

    def __init__(self, account: LocalAccount, server: StackServer, folder: Path) -> None:
        self._account = account
        self._folder = folder
        self._endpoint = server.url
        self._asked = ""
        folder.mkdir()
        keys = account.person("ana")
        environment = {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_REGION": "us-east-1",
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_ACCESS_KEY_ID": keys["accessKeyId"],
            "AWS_SECRET_ACCESS_KEY": keys["secretAccessKey"],
            "AWS_PAGER": "",
        }
        self._terminal = Terminal(folder, environment)
        put_aws(folder / "bin" / "aws")

    def types(self, some: Sequence[Command]) -> list[str]:
        """Return what does not end as its page says."""
        failed = []
        for name, source in FILES.items():
            self._terminal.put(name, ROOT / source)
        if any("create-access-entry" in one.text or "entry ApplyChangeRole" in one.text for one in some):
            self._account.stack.eks.cluster(EKS_NAME).entries.clear()  # nobody has made them yet
        if any("list-executions" in one.text for one in some):
            self._fail()
        if any("taskgov advise work/" in one.text for one in some):
            self._work_for_weeks()
        if any("team-a/mine" in one.text for one in some):
            self._account.cluster.submit(job_manifest("team-a", "mine", {"nvidia.com/gpu": "1"}, pods=2))
        with self._terminal as shell, served(FakeForge()) as forge:
            shell.types(OUT)
            for command in some:
                self._log_in()
                if command.text.startswith("taskgov review"):
                    self._in_pipeline(shell, forge)
                elif "--reviewed forge" in command.text:
                    self._merge_reviewed(shell, forge)
                for beginning, name in UNSET.items():
                    if command.text.startswith(beginning):
                        (shell.folder / name).unlink(missing_ok=True)
                watched = WATCHED if command.text.endswith(" --watch") else ""
                ended = shell.types(watched + self._filled(command.text))
                if ended.code != ENDS.get(command.text, (0, ""))[0]:
                    failed.append(f"{command}\nended with {ended.code}: {ended.out[-2000:]}{ended.err[-2000:]}")
        return failed

    def _in_pipeline(self, shell: Terminal, forge: FakeForge) -> None:
        """Set what a pipeline has: of a pull request, or of its merge."""
        variables = pipeline(forge, "github")
        shell.types("export " + " ".join(f"{name}={value}" for name, value in variables.items()))

    def _merge_reviewed(self, shell: Terminal, forge: FakeForge) -> None:
        """Review a changed document on a snapshot of what stands now, and merge it."""
        before = len(self._ended("nothing-to-do"))
        shell.types(filled("taskgov reconcile CLUSTER"))
        self._until(lambda: "stored" if len(self._ended("nothing-to-do")) > before else "")
        (shell.folder / "ml-cluster.yaml").write_text(self._changed())
        self._in_pipeline(shell, forge)
        shell.types(filled("taskgov review FILE"))
        forge.is_merged = True
        self._in_pipeline(shell, forge)

    def _work_for_weeks(self) -> None:
        """Put the record of six weeks into the bucket."""
        bucket = self._account.stack.outputs["BucketName"]
        for key, body in with_record(two_teams(), MONDAY, WORKERS.instance_type).items():
            self._client("s3").put_object(Bucket=bucket, Key=key, Body=body)

    def _fail(self) -> None:
        """Let an execution of each kind fail, as the runbooks begin."""
        client, outputs = self._client("stepfunctions"), self._account.stack.outputs
        for machine in (outputs["AuditStateMachineArn"], outputs["ReconcileStateMachineArn"]):
            arn = client.start_execution(stateMachineArn=machine, input="{}")["executionArn"]
            ended = self._until(partial(self._ended_execution, arn))
            assert ended == "FAILED", ended

    def _ended_execution(self, arn: str) -> str:
        status = self._client("stepfunctions").describe_execution(executionArn=arn)["status"]
        return "" if status == "RUNNING" else str(status)

    def _filled(self, text: str) -> str:
        here = filled(text).replace("http://127.0.0.1:4566", self._endpoint)  # a port that is free, not the usual one
        here = UNBUILT[0].sub(UNBUILT[1], here)
        return PLAN.sub(self._plan_for(text), here) if PLAN.search(here) else here

    def _plan_for(self, text: str) -> str:
        """Return the id of a plan that the command may be typed with."""
        if re.match("taskgov (approve|reject)", text):
            self._asked = self._asked or self._ask()
            return self._asked
        outcome = "planned" if text.startswith("taskgov apply") else "applied"
        after = self._asked if outcome == "applied" else ""
        return self._until(lambda: next((plan for plan in self._ended(outcome) if not after or plan == after), ""))

    def _ask(self) -> str:
        """Put a document into force whose plan waits for a person."""
        bucket = self._account.stack.outputs["BucketName"]
        body = self._changed(ASKS).encode()
        self._client("s3").put_object(Bucket=bucket, Key="policies/ml-cluster.yaml", Body=body)
        return self._until(
            lambda: next((one["planId"]["S"] for one in self._items() if one["sk"]["S"].startswith("APPROVAL#")), "")
        )

    def _changed(self, *sections: dict[str, Any]) -> str:
        """Return the document in force with other shares."""
        document = yaml.safe_load((DOCUMENTS / "policy.yaml").read_text())
        for team in document["teams"]:
            team["share"][0]["percent"] = 25
        return json.dumps(dict(ChainMap(*sections, document)))

    def _ended(self, outcome: str) -> list[str]:
        """Return the plans of runs that ended like this, the newest first."""
        runs = [one for one in self._items() if one["sk"]["S"].startswith("RUN#") and "planId" in one]
        ended = [one for one in runs if one["outcome"]["S"] == outcome]
        return [one["planId"]["S"] for one in sorted(ended, key=lambda one: str(one["sk"]["S"]), reverse=True)]

    def _items(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = self._client("dynamodb").scan(TableName=self._account.stack.outputs["TableName"])[
            "Items"
        ]
        return items

    def _client(self, service: str) -> Any:
        return boto3.client(  # type: ignore[call-overload]  # any service
            service,
            endpoint_url=self._endpoint,
            region_name="us-east-1",
            aws_access_key_id="me",
            aws_secret_access_key="any",
        )

    def _until(self, ask: Callable[[], str]) -> str:
        """Ask until there is an answer: runs take their time."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not (answer := ask()):
            assert time.monotonic() < deadline, "what the page goes on from does not come"
            time.sleep(0.5)
        return answer

    def _log_in(self) -> None:
        """Write the kubeconfig that `aws eks update-kubeconfig` writes, with a token that is good for a while."""
        eks_name = self._account.eks_name
        cluster = self._account.stack.eks.cluster(eks_name)
        name = f"arn:aws:eks:us-east-1:111122223333:cluster/{eks_name}"
        token = token_for(eks_name, "https://sts.amazonaws.com")
        (self._folder / ".kube").mkdir(exist_ok=True)
        (self._folder / ".kube" / "config").write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {
                            "name": name,
                            "cluster": {
                                "server": cluster.endpoint,
                                "certificate-authority-data": cluster.certificate_authority,
                            },
                        }
                    ],
                    "users": [{"name": name, "user": {"token": token}}],
                    "contexts": [
                        {"name": context, "context": {"cluster": name, "user": name}} for context in (name, eks_name)
                    ],
                    "current-context": name,
                }
            )
        )


def put_aws(place: Path) -> None:
    """Put the AWS CLI there; version 1 has a host of its own for SQS, whatever AWS_ENDPOINT_URL is."""
    program = shutil.which("aws")
    place.write_text(f'#!/bin/sh\nexec {program} $([ "$1" = sqs ] && echo "--endpoint-url $AWS_ENDPOINT_URL") "$@"\n')
    place.chmod(0o755)


def sit_down(account: LocalAccount, sitting: Sitting, folder: Path) -> list[str]:
    """Type in a process that was forked from the one that opened the account."""
    account.serve_kubernetes_again()
    with StackServer(account.stack, ["127.0.0.1"]) as server:
        return Person(account, server, folder).types(sitting.commands)


class PlainAccount(LocalAccount):
    """An account with an EKS cluster without HyperPod, in which somebody made the queue of team-a with kubectl."""

    eks_name = "plain-eks"

    def __init__(self) -> None:
        super().__init__()
        parameters = {"ApplyMode": "plan", "ClustersWithoutDocument": "*", "WatchPlainEks": "yes"}
        self.stack = Stack(TEMPLATE, parameters, self.clock)
        self.cluster = SimulatedCluster(
            self.eks_name, lambda: self.clock.now, pace=Pace(join=30, stop=1), at=self.clock.at
        )

    def _rules(self) -> RulesOf:
        rights = {group: read_rules(RBAC, group) for group in (READERS, WRITERS)}
        return lambda groups: tuple(rule for group in sorted(groups) for rule in rights.get(group, ()))

    def _register(self, certificate: Path) -> None:
        authority = base64.b64encode(certificate.read_bytes()).decode()
        entries = entries_of(self.stack, is_plain_eks=True)
        self.stack.eks.register_cluster(self.eks_name, self.kubernetes_url, authority, entries=entries, addons={})

    def _seed(self) -> None:
        self.cluster.set_target(WORKERS)
        self.cluster.configure_kueue(fair_sharing=True)
        self.stack.run_until_quiet()
        config = ComputeQuotaConfig.model_validate(
            {"ComputeQuotaResources": [{"InstanceType": WORKERS.instance_type, "Count": 2}]}
        )
        reading = Reading(self.stack.place.arn("eks", "cluster/plain-eks"), InstanceTypeTable(), "v1beta2")
        for one in reading.rendered("team-a", config, 0, ActivationState.ENABLED).in_order():
            self.cluster.apply_object(dict(one), "kubectl")
        self._keep_well()
        self._put("policies/plain-eks.yaml", ROOT / "tests/typed/files/plain-eks.yaml")
        self.stack.run_until_quiet()


def account_of(mode: Mode) -> LocalAccount:
    """Return the account that commands of this mode are typed at, to be opened."""
    if mode == "plain-eks":
        return PlainAccount()
    bare = workers_of(BARE) if mode == "bare" else None
    return LocalAccount(bare=bare, mode="apply" if mode == "apply" else "plan")


@pytest.fixture(scope="module")
def account(request: pytest.FixtureRequest) -> Iterator[LocalAccount]:
    for program in ("aws", "kubectl"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    with account_of(request.param) as opened:
        if request.param == "bare":
            opened.stack.client("eks").create_addon(clusterName=EKS_NAME, addonName=TASK_GOVERNANCE_ADDON)
        opened.stack.fire("PublishUsageSchedule")  # the record of work begins with a look
        opened.stack.run_until_quiet(30)
        opened.stack.client("iam").create_role(RoleName="data-scientist", AssumeRolePolicyDocument="{}")
        yield opened


@pytest.mark.walkthroughs
@pytest.mark.parametrize(("account", "page"), typed_by_mode(), indirect=["account"])
def test_what_a_page_says_to_type_ends_as_it_says(
    account: LocalAccount, page: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    mode = request.node.callspec.params["account"]
    work = [
        partial(sit_down, account, one, tmp_path / str(number))
        for number, one in enumerate(sittings()[page])
        if one.mode == mode
    ]
    failed = [text for some in forks.in_children(work, os.cpu_count() or 1) for text in some]
    assert not failed, "\n\n".join(failed)
