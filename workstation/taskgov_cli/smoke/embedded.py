"""The embedded account as a sandbox: a cluster of four instances, and the stack, which is deployed from the start."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

import boto3

from taskgov_cli.smoke.model import StepError
from taskgov_embedded.cloudformation.resources import STACK_NAME
from taskgov_embedded.deployable import ROOT, TEMPLATE
from taskgov_embedded.walkthrough.model import Walkthrough
from taskgov_embedded.walkthrough.world import EKS_NAME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

WATCH_SECONDS: Final = 120
CODE: Final = ("functions", "layers", "statemachines")


@dataclass(slots=True)
class EmbeddedDeployer:
    """Deploys over the stack of an open world, and deletes it."""

    world: World
    folder: Path
    stack: str = STACK_NAME
    is_deleted: bool = field(default=False)

    def deploy(
        self, parameters: Mapping[str, str], revision: str | None = None, watch: Callable[[], None] | None = None
    ) -> None:
        """Deploy with these parameters; a revision is another content of the layer, as the real build makes it."""
        watching = [watch is not None]

        def look() -> None:
            if watch is not None and watching[0]:
                watch()
                self.world.clock.after(WATCH_SECONDS, look)

        self.world.clock.after(WATCH_SECONDS, look)
        try:
            why = self.world.stack.update(TEMPLATE if revision is None else self._revised(revision), parameters)
        finally:
            watching[0] = False
        if why is not None:
            raise StepError(f"the deployment was rolled back: {why}")

    def _revised(self, revision: str) -> Path:
        for name in CODE:
            shutil.copytree(ROOT / name, self.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        (self.folder / "layers/taskgov/python/taskgov.revision").write_text(revision)
        return Path(shutil.copy(TEMPLATE, self.folder))

    def is_there(self) -> bool:
        """Return whether the stack was not deleted yet."""
        return not self.is_deleted

    def settle(self) -> None:
        """Do nothing: the account's own deployments have ended when they return."""

    def delete(self) -> None:
        """Delete the stack as `sam delete` does; what it retains stays."""
        self.world.stack.uninstall()
        self.is_deleted = True


@contextmanager
def opened(folder: Path) -> Iterator[EmbeddedDeployer]:
    """Open an account with a cluster that nobody governs: no access entries, a trail that logs."""
    with World(_cluster()) as world:
        boto3.setup_default_session()  # a person's own, made before the account was
        eks = boto3.client("eks")
        for role in world.stack.outputs["KubernetesRoleArns"].split(","):
            eks.delete_access_entry(clusterName=EKS_NAME, principalArn=role)
        boto3.client("s3").create_bucket(Bucket="trail")
        trails = boto3.client("cloudtrail")
        trails.create_trail(Name="management-events", S3BucketName="trail")
        trails.start_logging(Name="management-events")
        yield EmbeddedDeployer(world, folder)


def _cluster() -> Walkthrough:
    return Walkthrough.model_validate(
        {
            "name": "Smoke test",
            "source": "taskgov smoke --embedded",
            "about": "a cluster that nobody governs",
            "starts": "2026-11-20T09:00:00Z",
            "publish_minutes": 60,
            "cluster": {"groups": [{"instanceType": "ml.g5.8xlarge", "count": 4}]},
            "steps": [{"title": "as it is", "do": [], "expect": {}}],
        }
    )
