"""The rows of the five published documents: each number and each behaviour, by document and section.

A row is computed here, or expected by a walkthrough (`make verify` plays all, with the step named here), or typed and
compared on docs/walkthroughs.md (`make test-walkthroughs`), or left out with a reason in docs/limits.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from taskgov.hyperpod.borrowing import borrow_percent, flavor_quotas
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.limits import WEIGHT
from taskgov.hyperpod.model import ComputeQuotaConfig, ResourceSharingConfig, SharingStrategy
from taskgov.hyperpod.names import cluster_queue_of, local_queue_of, namespace_of, priority_class_of
from taskgov_embedded.walkthrough.model import all_files

DOCS = Path(__file__).parents[2] / "docs"
GIB = 2**30
SECTIONS = {
    "000": (
        "Installing the add-on",
        "Cluster policy",
        "Compute allocations",
        "Borrow compute from another team",
        "Reclaim guaranteed compute",
        "Preempt low priority tasks",
        "Inspecting workloads",
    ),
    "001": ("Borrowing idle compute", "Reclaiming guaranteed compute", "Preempt a lower priority task"),
    "002": (
        "Managed resources",
        "Key concepts",
        "Activation",
        "Options",
        "Setup",
        "Job 1",
        "Job 2",
        "Best practices",
        "Business value",
    ),
    "003": ("Console", "CLI", "Deep dive", "Submitting tasks", "Sample commands", "Common scenarios"),
    "004": ("Compute prioritization", "Compute allocation", "Sharing examples"),
}


@dataclass(frozen=True, slots=True)
class Row:
    """A row: where it stands, and what it says."""

    document: str
    section: str
    says: str

    @property
    def id(self) -> str:
        return f"document {self.document}, {self.section}: {self.says}"


def nominal(instance_type: str, **asked: float) -> dict[str, int]:
    return dict(quota(instance_type, 100, **asked).nominal)


def quota(instance_type: str, limit: int, **asked: float) -> Any:
    names = {"count": "Count", "accelerators": "Accelerators", "vcpu": "VCpu", "memory": "MemoryInGiB"}
    resource = {"InstanceType": instance_type, **{names[name]: amount for name, amount in asked.items()}}
    sharing = {"Strategy": "LendAndBorrow", "BorrowLimit": limit}
    config = {"ComputeQuotaResources": [resource], "ResourceSharingConfig": sharing}
    return flavor_quotas(ComputeQuotaConfig.model_validate(config), InstanceTypeTable())[0]


def amounts(found: dict[str, int], *names: str) -> tuple[int, ...]:
    units = {"cpu": 1000, "memory": GIB}
    return tuple(found[name] // units.get(name, 1) for name in names)


GPU, NEURON, EFA = "nvidia.com/gpu", "aws.amazon.com/neurondevice", "vpc.amazonaws.com/efa"
COMPUTED: list[tuple[Row, Any, Any]] = [
    (
        Row("000", "Compute allocations", "50 % of 2 instances is 1 GPU to borrow"),
        lambda: quota("ml.g5.8xlarge", 50, count=2).borrowing[GPU],
        1,
    ),
    (
        Row("002", "Options", "an ml.g5.8xlarge has 1 GPU, two have 2"),
        lambda: (nominal("ml.g5.8xlarge", count=1)[GPU], nominal("ml.g5.8xlarge", count=2)[GPU]),
        (1, 2),
    ),
    (
        Row("002", "Options", "2 of the 4 GPUs of an ml.g5.12xlarge, beside 8 of two instances"),
        lambda: (nominal("ml.g5.12xlarge", accelerators=2)[GPU], nominal("ml.g5.12xlarge", count=2)[GPU]),
        (2, 8),
    ),
    (
        Row("002", "Options", "100 % lets a team borrow as much as its own"),
        lambda: quota("ml.g5.12xlarge", 100, accelerators=2).borrowing[GPU],
        2,
    ),
    (
        Row("002", "Key concepts", "strategies LendAndBorrow, Lend and DontLend; Borrow is refused"),
        lambda: {one.value for one in SharingStrategy},
        {"LendAndBorrow", "Lend", "DontLend"},
    ),
    (
        Row("003", "Console", "2 GPUs of an ml.p5.48xlarge bring 48 vCPUs and 512 GiB, a quarter"),
        lambda: amounts(nominal("ml.p5.48xlarge", accelerators=2), "cpu", "memory"),
        (48, 512),
    ),
    (
        Row("003", "Console", "2 GPUs of ml.g5.2xlarge bring 16 vCPUs and 64 GiB of two instances"),
        lambda: amounts(nominal("ml.g5.2xlarge", accelerators=2), "cpu", "memory"),
        (16, 64),
    ),
    (
        Row("003", "Console", "a customised allocation: 2 GPUs with 20 vCPUs and 100 GiB"),
        lambda: amounts(nominal("ml.p5.48xlarge", accelerators=2, vcpu=20, memory=100), "cpu", "memory"),
        (20, 100),
    ),
    (
        Row("003", "Console", "4 Neuron devices of an ml.trn1.32xlarge bring 32 vCPUs, 128 GiB and 2 EFA"),
        lambda: amounts(nominal("ml.trn1.32xlarge", accelerators=4), NEURON, "cpu", "memory", EFA),
        (4, 32, 128, 2),
    ),
    (
        Row("003", "CLI", "10 % of 2 GPUs is none to borrow"),
        lambda: quota("ml.g6.12xlarge", 10, accelerators=2).borrowing[GPU],
        0,
    ),
    (
        Row("003", "CLI", "2 vCPUs of an ml.c5.2xlarge bring 4 GiB"),
        lambda: amounts(nominal("ml.c5.2xlarge", vcpu=2), "cpu", "memory"),
        (2, 4),
    ),
    (
        Row("003", "Deep dive", "2 GPUs and 48 vCPUs of an ml.g6.12xlarge: 192Gi and 1 EFA; 50 % is 1, 24, 96Gi and 0"),
        lambda: tuple(
            amounts(dict(found), GPU, "cpu", "memory", EFA)
            for found in (
                quota("ml.g6.12xlarge", 50, accelerators=2, vcpu=48).nominal,
                quota("ml.g6.12xlarge", 50, accelerators=2, vcpu=48).borrowing,
            )
        ),
        ((2, 48, 192, 1), (1, 24, 96, 0)),
    ),
    (
        Row("003", "Deep dive", "names of namespace, ClusterQueue and LocalQueue"),
        lambda: (namespace_of("t"), cluster_queue_of("t"), local_queue_of("t")),
        ("hyperpod-ns-t", "hyperpod-ns-t-clusterqueue", "hyperpod-ns-t-localqueue"),
    ),
    (
        Row("003", "Common scenarios", "one GPU of an ml.p5.48xlarge for each scientist: 8 share the instance"),
        lambda: Fraction(nominal("ml.p5.48xlarge", count=1)[GPU], nominal("ml.p5.48xlarge", accelerators=1)[GPU]),
        8,
    ),
    (
        Row("004", "Compute prioritization", "a class is named <name>-priority in Kubernetes"),
        lambda: priority_class_of("inference"),
        "inference-priority",
    ),
    (
        Row("004", "Compute allocation", "a namespace hyperpod-ns-<team> for each team"),
        lambda: namespace_of("team-name"),
        "hyperpod-ns-team-name",
    ),
    (
        Row("004", "Compute allocation", "weights from 0 (last) to 100 (first)"),
        lambda: (WEIGHT.minimum, WEIGHT.maximum),
        (0, 100),
    ),
    (
        Row("004", "Compute allocation", "500 is read as 500 %"),
        lambda: (
            borrow_percent(ResourceSharingConfig(borrow_limit=500)),
            quota("ml.c5.2xlarge", 500, count=2).borrowing["cpu"],
        ),
        (500, 5 * 2 * 8000),
    ),
    (
        Row("004", "Compute allocation", "a team that does not borrow has no limit, whatever it says"),
        lambda: [borrow_percent(ResourceSharingConfig(strategy=one, borrow_limit=50)) for one in ("Lend", "DontLend")],
        [0, 0],
    ),
]


@dataclass(frozen=True, slots=True)
class Played:
    """A row that a step of a walkthrough expects: a value at a path of its expectations."""

    row: Row
    walkthrough: str
    step: str
    path: str
    value: Any


JOBS = "jobs."
PLAYED = [
    Played(
        Row("000", "Borrow compute from another team", "3 instances with 2 of one's own: 1 is borrowed"),
        "01",
        "borrowing 1 from team B",
        "usage.0.borrowed",
        {GPU: 1},
    ),
    Played(
        Row("000", "Reclaim guaranteed compute", "team B takes back its own, and job 1 is suspended"),
        "01",
        "reclaims what is its own",
        "preemptions.0.reason",
        "InCohortReclamation",
    ),
    Played(
        Row("000", "Preempt low priority tasks", "a higher class preempts within the team"),
        "01",
        "preempts the team's own",
        "preemptions.0.reason",
        "InClusterQueue",
    ),
    Played(
        Row("001", "Borrowing idle compute", "cpu 40 of 88, memory 136Gi of 328Gi, GPUs 4 of 8"),
        "02",
        "borrows one from team B",
        "usage.0",
        {
            "team": "team-a",
            "flavor": "ml.g5.12xlarge",
            "total": {NEURON: 0, "cpu": 88, "memory": "328Gi", GPU: 8, EFA: 0},
            "borrowed": {NEURON: 0, "cpu": 40, "memory": "136Gi", GPU: 4, EFA: 0},
        },
    ),
    Played(
        Row("001", "Reclaiming guaranteed compute", "team A's job is suspended, team B's runs"),
        "02",
        "1 instance reclaims it",
        "jobs",
        {"team-a/team-a-qwen3-training-prio": "Suspended", "team-b/team-b-qwen3-training-prio": "Running"},
    ),
    Played(
        Row("001", "Preempt a lower priority task", "experimentation runs, training is suspended"),
        "02",
        "preempts within the queue",
        "jobs",
        {
            "team-a/team-a-qwen3-training-prio": "Suspended",
            "team-b/team-b-qwen3-training-prio": "Suspended",
            "team-b/team-b-qwen3-experimentation-prio": "Running",
        },
    ),
    Played(
        Row("002", "Setup", "quotas above the cluster are accepted (option 1)"),
        "03",
        "above what the cluster has",
        "plan.findings",
        ["over-commitment"],
    ),
    Played(
        Row("002", "Setup", "quotas above the cluster are accepted (option 2)"),
        "04",
        "above what the cluster has",
        "plan.findings",
        ["over-commitment"],
    ),
    Played(
        Row("002", "Job 1", "2 GPUs with 1 of one's own (option 1)"), "03", "borrows 1", "usage.0.borrowed", {GPU: 1}
    ),
    Played(
        Row("002", "Job 1", "4 GPUs with 2 of one's own (option 2)"),
        "04",
        "2 of them borrowed",
        "usage.0.borrowed",
        {GPU: 2},
    ),
    Played(
        Row("002", "Job 2", "team A is suspended while team B runs"),
        "03",
        "reclaims its quota",
        "jobs",
        {"team-a/imagenet-gpu-team-a-1": "Suspended", "team-b/imagenet-gpu-team-b-2": "Running"},
    ),
    Played(
        Row("002", "Job 2", "when team B's job is deleted, team A's runs again"),
        "03",
        "team A's resumes",
        "jobs",
        {"team-a/imagenet-gpu-team-a-1": "Running", "team-b/imagenet-gpu-team-b-2": "Gone"},
    ),
    Played(
        Row("003", "Console", "a quota may be more than the cluster has"),
        "07",
        "3 instances on a cluster that has 1",
        "plan.findings",
        ["over-commitment"],
    ),
    Played(
        Row("003", "Console", "what is not there yet keeps jobs waiting until it comes"),
        "07",
        "2 of its pods wait for nodes",
        "jobs",
        {"team1/gpu-training-job": "Admitted, waiting for nodes"},
    ),
    Played(
        Row("003", "Submitting tasks", "without a class a task has the lowest priority"),
        "07",
        "goes before one without",
        "jobs",
        {"team1/tuned": "Running", "team1/gpu-training-job": "Suspended", "team1/no-class": "Suspended"},
    ),
    Played(
        Row("003", "Console", "Trainium: a quarter of an instance is lent, borrowed and taken back"),
        "27",
        "Pretraining needs its 12",
        "preemptions.0.reason",
        "InCohortReclamation",
    ),
    Played(
        Row("004", "Compute prioritization", "first come, first served: one user may take all idle compute"),
        "11",
        "One user of team A takes all",
        "usage.0.borrowed",
        {GPU: 4},
    ),
    Played(
        Row("004", "Compute prioritization", "a borrowed task is preempted by a more urgent one"),
        "11",
        "preempts the borrowing ones",
        "preemptions.0.reason",
        "InCohortReclaimWhileBorrowing",
    ),
    Played(
        Row("004", "Compute prioritization", "tasks queue in the order of submission"),
        "13",
        "Three jobs, each as large",
        "jobs",
        {"team-a/first": "Running", "team-a/second": "Suspended", "team-a/third": "Suspended"},
    ),
    Played(
        Row("004", "Compute prioritization", "new weights of classes rank the queue anew"),
        "16",
        "fine-tuning goes first",
        "jobs",
        {"team-a/tunes": "Running", "team-a/trains": "Suspended"},
    ),
    Played(
        Row("004", "Sharing examples", "6 with 2 in use, 5 with 4 in use: a task of 4 borrows 3"),
        "08",
        "With 60 %",
        "usage.0.borrowed",
        {GPU: 3},
    ),
    Played(
        Row("004", "Sharing examples", "with a limit of 50 % it cannot"),
        "08",
        "stays pending",
        "jobs",
        {"team-b/b-more": "Suspended"},
    ),
    Played(
        Row("004", "Sharing examples", "who does not lend does not borrow"),
        "09",
        "cannot go beyond the own quota",
        "jobs",
        {"lender/lender-six": "Suspended", "closed/closed-three": "Suspended"},
    ),
    Played(
        Row("004", "Sharing examples", "a team that fills the gap is a pool for all"),
        "10",
        "borrows from the pool",
        "usage.0.borrowed",
        {"cpu": 22},
    ),
    Played(
        Row("004", "Compute allocation", "weights 10 and 5: who has 10 goes first, who has 0 last"),
        "12",
        "Everybody uses the own quota",
        "jobs",
        {"zero/zero-more": "Suspended", "five/five-more": "Suspended", "ten/ten-more": "Suspended"},
    ),
]
TYPED = [
    (
        Row("000", "Installing the add-on", "create-addon and describe-addon"),
        "(document 000)",
        'addon.status\n"ACTIVE"',
    ),
    (Row("000", "Cluster policy", "two values come back"), "(document 000)", '"ClusterSchedulerConfigArn"'),
    (Row("000", "Cluster policy", "four priority classes"), "(document 000)", "experimentation-priority   80"),
    (
        Row("000", "Inspecting workloads", "kubectl's columns"),
        "(document 000)",
        "RESERVED IN                       ADMITTED",
    ),
    (
        Row("000", "Inspecting workloads", "why it was preempted"),
        "(document 000)",
        "due to prioritization in the ClusterQueue",
    ),
    (Row("002", "Activation", "create-addon with a Region"), "(document 002)", "create-addon --region us-east-1"),
    (Row("002", "Job 2", "the pods of team A are gone"), "(document 002)", "grep -o NotFound || true\nNotFound"),
    (Row("003", "Deep dive", "describe-compute-quota"), "(document 003)", '"VCpu": 48.0'),
    (Row("003", "Deep dive", "describe clusterqueue"), "(document 003)", "Borrowing Limit:  96Gi"),
    (Row("003", "Deep dive", "describe localqueue"), "(document 003)", "Admitted Workloads:  0"),
    (
        Row("003", "Submitting tasks", "a Job, as printed, is queued"),
        "(document 003)",
        "job.batch/gpu-training-job created",
    ),
    (
        Row("003", "Sample commands", "get workloads in the team's namespace"),
        "(document 003)",
        "get workloads -n hyperpod-ns-team1",
    ),
]
TOLD = [
    (
        Row("000", "Inspecting workloads", "older words of the pending message"),
        "limits.md",
        "borrowing limit for nvidia.com/gpu",
    ),
    (Row("002", "Managed resources", "KueueManagerConfig"), "limits.md", "KueueManagerConfig"),
    (Row("002", "Business value", "up to 40 % lower cost"), "limits.md", "Up to 40 % lower cost"),
    (Row("002", "Best practices", "strict or flexible sharing"), "choosing.md", "strict"),
    (Row("004", "Compute allocation", "members need RBAC"), "limits.md", "create team role"),
    (Row("004", "Compute allocation", "limits above 500 %"), "limits.md", "above 500 %"),
]


@cache
def expected(walkthrough: str, step: str) -> dict[str, Any]:
    """The expectations of the step whose title has these words."""
    (file,) = [one for one in all_files() if one.name.startswith(f"{walkthrough}-")]
    (found,) = [one for one in yaml.safe_load(file.read_text())["steps"] if step in one["title"]]
    return dict(found["expect"])


@pytest.mark.parametrize(("row", "computed", "value"), COMPUTED, ids=lambda one: getattr(one, "id", ""))
def test_a_number_of_the_documents_is_what_is_computed(row: Row, computed: Any, value: Any) -> None:
    assert computed() == value, row.says


@pytest.mark.parametrize("played", PLAYED, ids=lambda one: one.row.id)
def test_a_behaviour_of_the_documents_is_expected_by_a_walkthrough(played: Played) -> None:
    found: Any = expected(played.walkthrough, played.step)
    for part in played.path.split("."):
        found = found[int(part)] if part.isdigit() else found[part]
    if isinstance(played.value, dict):
        found = {name: found.get(name) for name in played.value}
    assert found == played.value


@pytest.mark.parametrize(("row", "section", "shown"), TYPED, ids=lambda one: getattr(one, "id", ""))
def test_what_the_documents_print_is_on_the_page_that_is_typed(row: Row, section: str, shown: str) -> None:
    (text, *_) = [
        one for one in (DOCS / "walkthroughs.md").read_text().split("\n## ") if section in one.partition("\n")[0]
    ]
    assert shown in text, row.says


@pytest.mark.parametrize(("row", "page", "words"), TOLD, ids=lambda one: getattr(one, "id", ""))
def test_what_is_left_out_or_advised_is_said_on_its_page(row: Row, page: str, words: str) -> None:
    assert words in (DOCS / page).read_text(), row.says


ROWS = [
    *(row for row, *_ in COMPUTED),
    *(one.row for one in PLAYED),
    *(row for row, *_ in TYPED),
    *(row for row, *_ in TOLD),
]
NAMED_IN_TESTS = {("002", "Managed resources"): "tests/embedded/cluster/test_admission.py"}


def test_every_section_of_every_document_has_its_rows() -> None:
    covered = {(row.document, row.section) for row in ROWS} | set(NAMED_IN_TESTS)
    wanted = {(document, section) for document, sections in SECTIONS.items() for section in sections}
    assert (sorted(wanted - covered), sorted(covered - wanted)) == ([], [])
    assert len({row.id for row in ROWS}) == len(ROWS)
    assert all((DOCS.parent / file).exists() for file in NAMED_IN_TESTS.values())


def test_every_row_of_the_page_of_limits_names_its_documents() -> None:
    table = (DOCS / "limits.md").read_text().partition("\n## ")[0]
    rows = re.findall(r"^\| (?!left out|---)(.*?) \| (.*?) \| (.*) \|$", table, re.MULTILINE)
    assert len(rows) > 10
    assert [row for row in rows if not re.search(r"\b00[0-4]\b", row[1]) or len(row[2]) < 20] == []
