"""Deploy and delete the stack of a run with the AWS SAM CLI, as docs/deploy.md has a person do it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import ClientError

from taskgov.bootstrap.aws import CONFIG
from taskgov_cli.smoke.model import StepError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

TAG: Final = "taskgov:smoke"
"""Tag of the stack; its value is the run that made it."""
LOOK_SECONDS: Final = 15
LAST_WORDS: Final = 2000
SETTLE_SECONDS: Final = 3600
MOVING: Final = frozenset(
    {
        "CREATE_IN_PROGRESS",
        "ROLLBACK_IN_PROGRESS",
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "UPDATE_ROLLBACK_IN_PROGRESS",
        "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS",
    }
)
"""Statuses in which a stack still makes resources, or CloudFormation deletes none."""


@dataclass(slots=True)
class SamDeployer:
    """The stack of one run, built and deployed from a checkout."""

    stack: str
    run_id: str
    checkout: Path

    def deploy(
        self, parameters: Mapping[str, str], revision: str | None = None, watch: Callable[[], None] | None = None
    ) -> None:
        """Build and deploy. Raises StepError for a stack of this name that another made, and for what SAM refuses."""
        self.is_there()
        # SAM's cache compares files only: with it, a revision would change nothing.
        self._sam(["build", "--no-cached"], {"TASKGOV_REVISION": revision or ""})
        given = [f"{name}={value}" for name, value in parameters.items()]
        options = [
            "--resolve-s3",
            "--s3-prefix",
            self.stack,
            "--capabilities",
            "CAPABILITY_IAM",
            "--no-confirm-changeset",
        ]
        tags = ["--tags", f"{TAG}={self.run_id}", "--parameter-overrides", *given]
        self._sam(["deploy", "--stack-name", self.stack, *options, "--no-fail-on-empty-changeset", *tags], {}, watch)

    def is_there(self) -> bool:
        """Return whether there is the stack of this run, by its tag. Raises StepError for one that another made."""
        owner = self._owner()
        if owner not in {None, self.run_id}:
            raise StepError(f"there is a stack {self.stack}, which this run did not make")
        return owner is not None

    def delete(self) -> None:
        """Delete the stack and its artifacts. Raises StepError for one that another made."""
        if self.is_there():
            self._sam(["delete", "--stack-name", self.stack, "--no-prompts"], {})

    def _owner(self) -> str | None:
        """Return which run made the stack of this name, an empty text if none did, None where there is no stack."""
        found = self._described()
        return None if found is None else next((tag["Value"] for tag in found.get("Tags", ()) if tag["Key"] == TAG), "")

    def _described(self) -> Any:
        client = boto3.client("cloudformation", config=CONFIG)
        try:
            return client.describe_stacks(StackName=self.stack)["Stacks"][0]
        except ClientError as error:
            if "does not exist" in str(error):
                return None
            raise

    def settle(self) -> None:
        """Break off an update, and wait until nothing is made any more. Raises StepError after an hour."""
        end = time.time() + SETTLE_SECONDS
        while (found := self._described()) is not None and found["StackStatus"] in MOVING:
            if found["StackStatus"] == "UPDATE_IN_PROGRESS":
                self._cancel_update()
            if time.time() > end:
                raise StepError(f"stack {self.stack} was still in {found['StackStatus']} after {SETTLE_SECONDS} s")
            time.sleep(LOOK_SECONDS)

    def _cancel_update(self) -> None:
        with suppress(ClientError):  # it has ended meanwhile
            boto3.client("cloudformation", config=CONFIG).cancel_update_stack(StackName=self.stack)

    def _sam(self, words: list[str], variables: Mapping[str, str], watch: Callable[[], None] | None = None) -> None:
        program = shutil.which("sam")
        if program is None:
            raise StepError("the AWS SAM CLI is not installed (docs/deploy.md)")
        log = self.checkout / "build" / f"{self.stack}.log"
        log.parent.mkdir(exist_ok=True)
        with log.open("a") as out:
            running = subprocess.Popen(  # noqa: S603 - our own command
                [program, *words], cwd=self.checkout, env={**os.environ, **variables}, stdout=out, stderr=out
            )
            try:
                _wait(running, watch)
            except BaseException:
                running.terminate()
                running.wait()
                raise
        if running.returncode != 0:
            raise StepError(
                f"sam {words[0]} ended with {running.returncode}: {log.read_text()[-LAST_WORDS:]} (all of it: {log})"
            )


def _wait(running: subprocess.Popen[bytes], watch: Callable[[], None] | None) -> None:
    while True:
        if watch is not None:
            watch()
        try:
            running.wait(timeout=LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            continue
        return
