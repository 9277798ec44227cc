"""The form of a walkthrough file: a cluster, and steps with actions and expectations.

Everything that is not known is refused, so that a misspelt expectation is an error and never a check that cannot fail.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from taskgov_embedded import yaml_text
from taskgov_embedded.walkthrough.expectations import Expectations
from taskgov_embedded.walkthrough.part import Amounts, Part


class Group(Part):
    """An instance group of the cluster; `allocatable` where it is not what the kubelet's usual reservation leaves."""

    name: str = "workers"
    instance_type: str
    count: int
    allocatable: Amounts | None = None
    threads_per_core: Literal[1, 2] = 2
    training_plan_until: datetime | None = None
    """Its instances are of a training plan of the group's name, which ends then."""


class ClusterSetup(Part):
    name: str = "ml-cluster"
    backend: Literal["sagemaker", "kueue"] = "sagemaker"
    """`kueue`: an EKS cluster of its own, without HyperPod and without its add-on."""
    groups: tuple[Group, ...]


class Call(Part):
    """A call of the SageMaker API by a person.

    `${clusterArn}` stands for the cluster, `${quota:NAME}` for a quota's id, `${version:NAME}` for its version,
    `${schedulerConfig}` and `${schedulerConfigVersion}` for the cluster policy.
    """

    operation: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    by: str = "admin"
    refused: str | None = None
    """The error code with which the service must refuse the call."""


class Job(Part):
    """A job of a team. `pods` alike, each requesting `request`."""

    team: str
    name: str
    kind: Literal["PyTorchJob", "HyperPodPyTorchJob", "Job", "Pod"] = "PyTorchJob"
    priority: str | None = None
    """Priority class of the cluster policy, without the `-priority` of its Kubernetes name."""
    copies: int = 1
    """So many jobs alike, `NAME-1` and on."""
    pods: int = 1
    request: Amounts
    runs_minutes: float | None = None


class JobRef(Part):
    team: str
    name: str


class NodeEvent(Part):
    """Something that happens to `count` nodes of a group, the first ones by name, with HyperPod's own event.

    What is taken back is terminated by AWS, and the group's target stays as it is.
    """

    happens: Literal["fails", "recovers", "joins", "leaves", "taken-back"]
    group: str = "workers"
    count: int = 1


class Extension(Part):
    """The training plan of a group is extended."""

    group: str
    until: datetime


class Edit(Part):
    """A person changes a team's ClusterQueue with kubectl: fields of its spec by dotted path, list items by number."""

    team: str
    holds: dict[str, Any]
    by: str = "kubectl-edit"


class Action(Part):
    """One thing that a person or the world does: exactly one of its members is given."""

    call: Call | None = None
    submit: Job | None = None
    delete: JobRef | None = None
    nodes: NodeEvent | None = None
    extend: Extension | None = None
    kubectl: Edit | None = None
    policy: dict[str, Any] | None = None
    """The governance policy document is written to the bucket."""
    policy_text: str | None = None
    """The same, as text: for documents that are wrong."""
    policy_change: dict[str, Any] | None = None
    """Members of the document of before that are replaced."""
    wait_minutes: float | None = None
    approve: bool | None = None
    """A person approves (or rejects) the plan that waits."""
    event: dict[str, Any] | None = None
    """An event that somebody puts on the default bus: source, detailType, detail."""
    message: str | None = None
    """A message put straight into the intake queue."""
    reconcile: bool | None = None
    """The operator requests a run."""
    audit: bool | None = None
    """The nightly audit's time comes."""

    @model_validator(mode="after")
    def _is_one_thing(self) -> Action:
        if len(self.model_fields_set) != 1:
            raise ValueError(f"an action is one thing, got {sorted(self.model_fields_set) or 'nothing'}")
        return self

    @property
    def verb(self) -> str:
        """The member that is given."""
        return next(iter(self.model_fields_set))


class Question(Part):
    """A question to the command line, in the words that a person types after `taskgov`; the demo runs it.

    `{snapshot}` stands for a file with the cluster as it is after the step, `{series}` for the folder of all of them so
    far, `{live}` for the options of a live reading, `{folder}` for the folder in which `files` are, `{plan[OUTCOME]}`
    for the plan of the newest run that ended so, and `{plan[waiting]}` for the one that waits for a person.
    """

    command: str
    by: str | None = None
    """Who types it; the operator when nobody is named."""
    files: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Files that the command reads; `${clusterArn}` in them stands for the cluster."""
    wait_minutes: float = 0
    """How long the world is left to itself after the command."""
    shows: Annotated[tuple[str, ...], Field(min_length=1)]
    """Text that the answer must contain; runs of blanks count as one."""
    exit_code: int = 0


class Step(Part):
    title: str
    shows: str = ""
    """What the reader has seen after it, in one sentence: the story of `make demo` ends with these."""
    do: tuple[Action, ...] = ()
    expect: Expectations = Expectations()
    ask: tuple[Question, ...] = ()


class Walkthrough(Part):
    name: str
    source: str
    about: str
    mode: Literal["plan", "apply"] = "plan"
    publish_minutes: int = 1
    """How often usage is published; every minute, as the template has it, unless long times pass in the walkthrough."""
    starts: datetime
    team_topics: tuple[str, ...] = ()
    """Names of SNS topics that teams have made for themselves."""
    cluster: ClusterSetup
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]


HERE = Path(__file__).parent / "scenarios"
STORY = Path(__file__).with_name("story.yaml")
"""The walkthrough that `make demo` plays; it is none of `all_files`."""
SETTLE = timedelta(seconds=90)
"""How long the world is given to come to rest after an action: enough for a run, too short to meet a schedule."""


def load(path: Path) -> Walkthrough:
    """Read one file. Raises ValidationError that names every wrong member."""
    return Walkthrough.model_validate(yaml_text.read(path.read_text()))


def all_files() -> tuple[Path, ...]:
    """Return the files of all walkthroughs, in the order of their names."""
    return tuple(sorted(HERE.glob("*.yaml")))
