"""Whole plans on one instance type: what teams have after it, and the words that say why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest

from taskgov.allocation.plan import ChangeKind, Outcome, Plan, Reason
from taskgov.allocation.planner import plan_quotas
from taskgov.hyperpod.model import ComputeQuota
from taskgov.policy.document import PolicyDocument
from taskgov.quantities import GIBIBYTE
from taskgov.snapshot.model import GroupInstanceType, InstanceGroup, Node, Snapshot
from taskgov.violations import Violation
from tests.allocation.world import (
    ARN,
    C5,
    G5,
    G6,
    NOW,
    P5,
    applied,
    broken,
    counts,
    document,
    fixed,
    minutes,
    nodes,
    quota,
    row,
    share,
    snapshot,
)

G5_12 = "ml.g5.12xlarge"
M5 = "ml.m5.xlarge"


@dataclass(frozen=True)
class Case:
    policy: PolicyDocument | None
    nodes: Sequence[Node]
    want: Mapping[str, float]
    quotas: Sequence[ComputeQuota] = ()
    want_words: str = ""
    want_findings: set[str] = field(default_factory=set)
    want_changes: int | None = None


HELD = minutes(10)
FRESH = NOW - minutes(2)

CASES = {
    "four instances with two each are kept as they are (seed 000)": Case(
        document(fixed("team-a", row(Count=2)), fixed("team-b", row(Count=2)), pool=False),
        nodes(4),
        {"team-a": 2, "team-b": 2},
        [quota("team-a", row(Count=2)), quota("team-b", row(Count=2))],
        want_changes=0,
    ),
    "one instance each of two is kept as it is (seed 001)": Case(
        document(fixed("a", row(G5_12, Count=1)), fixed("b", row(G5_12, Count=1)), pool=False),
        nodes(2, G5_12),
        {"a": 1, "b": 1},
        [quota("a", row(G5_12, Count=1)), quota("b", row(G5_12, Count=1))],
        want_changes=0,
    ),
    "quotas of 1 and 2 on 2 instances are reported and left alone without a document (seed 002, option 1)": Case(
        None,
        nodes(2),
        {"a": 1, "b": 2},
        [quota("a", row(Count=1)), quota("b", row(Count=2))],
        want_findings={"over-commitment"},
        want_changes=0,
    ),
    "2 accelerators and 2 instances on 8 GPUs are reported and left alone (seed 002, option 2)": Case(
        None,
        nodes(2, G5_12),
        {"a": 2, "b": 2},
        [quota("a", row(G5_12, Accelerators=2)), quota("b", row(G5_12, Count=2))],
        want_findings={"over-commitment"},
        want_changes=0,
    ),
    "2 of 4 accelerators with all 48 vCPU leave 2 accelerators and no vCPU to the pool (seed 003)": Case(
        document(fixed("onlygputeam", row(G6, Accelerators=2, VCpu=48))),
        nodes(1, G6),
        {"onlygputeam": 2, "shared-pool": 2},
    ),
    "2 accelerators of a p5.48xlarge leave 6 to the pool (seed 003)": Case(
        document(fixed("a", row(P5, Accelerators=2))), nodes(1, P5), {"a": 2, "shared-pool": 6}
    ),
    "2 accelerators of two g5.2xlarge are both instances (seed 003)": Case(
        document(fixed("a", row("ml.g5.2xlarge", Accelerators=2))),
        nodes(2, "ml.g5.2xlarge"),
        {"a": 2, "shared-pool": 0},
    ),
    "a promise beyond capacity is cut to capacity (seed 003)": Case(
        document(fixed("a", row(Count=5)), pool=False),
        nodes(2),
        {"a": 2},
        want_words="capacity 2 ml.g5.8xlarge, tier 1 gives, guaranteed 5",
        want_findings={"capacity-shortage"},
    ),
    "a promise beyond capacity is granted where over-commitment is declared (seed 003)": Case(
        document(fixed("a", row(Count=5)), capacity={"overcommitPercent": 150}, pool=False), nodes(2), {"a": 5}
    ),
    "a dedicated pool team fills 6 and 5 up to 20 c5.2xlarge (seed 004)": Case(
        document(fixed("a", row(C5, Count=6)), fixed("b", row(C5, Count=5))),
        nodes(20, C5),
        {"a": 6, "b": 5, "shared-pool": 9},
    ),
    "ten over three equal shares are 4, 3, 3 (KEP-12382)": Case(
        document(*(share(f"team-{name}", 100 / 3) for name in "abc")),
        nodes(10),
        {"team-a": 4, "team-b": 3, "team-c": 3, "shared-pool": 0},
    ),
    "95 % usable capacity of 20 is 19 (KEP-12382)": Case(
        document(share("a", 100), capacity={"headroomPercent": 5}), nodes(20), {"a": 19, "shared-pool": 0}
    ),
    "headroom is rounded down to whole instances": Case(
        document(share("a", 100), capacity={"headroomPercent": 10}), nodes(19), {"a": 18, "shared-pool": 0}
    ),
    "1.5 times the capacity may be promised where half as much again is declared": Case(
        document(fixed("a", row(Count=9)), fixed("b", row(Count=9)), capacity={"overcommitPercent": 50}),
        nodes(10),
        {"a": 8, "b": 7, "shared-pool": 0},
        want_findings={"capacity-shortage"},
    ),
    "tier 2 gives first and keeps its floor": Case(
        document(fixed("team-a", row(P5, Count=6)), share("team-b", 50, P5, tier=2, floor=4)),
        (*nodes(9, P5), *broken(3, P5)),
        {"team-a": 5, "team-b": 4, "shared-pool": 0},
        [quota("team-a", row(P5, Count=6)), quota("team-b", row(P5, Count=6))],
        want_findings={"over-commitment", "capacity-shortage"},
    ),
    "floors beyond capacity are an incident and are scaled down": Case(
        document(share("a", 50, floor=6), share("b", 50, floor=3), pool=False),
        (*nodes(3), *broken(9)),
        {"a": 2, "b": 1},
        want_words="floors of 9, 3 to give, floors are scaled down",
        want_findings={"floors-exceed-capacity"},
    ),
    "a broken node counts until its hold time ends": Case(
        document(share("a", 100), pool=False),
        (*nodes(2), *broken(1, since=NOW - minutes(9))),
        {"a": 3},
        [quota("a", row(Count=3))],
        want_changes=0,
    ),
    "a broken node stops counting when its hold time ends": Case(
        document(share("a", 100), pool=False), (*nodes(2), *broken(1, since=NOW - HELD)), {"a": 2}
    ),
    "a node that has just become healthy does not count yet": Case(
        document(share("a", 100), pool=False), (*nodes(2), *nodes(1, prefix="new", healthy_since=FRESH)), {"a": 2}
    ),
    "a node that has been healthy long enough counts": Case(
        document(share("a", 100), pool=False),
        (*nodes(2), *nodes(1, prefix="new", healthy_since=NOW - minutes(5))),
        {"a": 3},
    ),
    "a machine that has not joined Kubernetes does not count": Case(
        document(share("a", 100), pool=False),
        (*nodes(2), *nodes(1, prefix="pending", in_kubernetes=False, instance_status="Pending")),
        {"a": 2},
    ),
    "what a team of no document holds is taken": Case(
        document(share("a", 100), pool=False),
        nodes(5),
        {"a": 3, "stranger": 2},
        [quota("stranger", row(Count=2))],
        want_findings={"team-not-in-policy", "capacity-shortage"},
    ),
    "a frozen team is left as it is and counted as taken": Case(
        document(share("a", 100), fixed("b", row(Count=1)), guardrails={"freeze": ["b"]}, pool=False),
        nodes(5),
        {"a": 1, "b": 4},
        [quota("b", row(Count=4))],
        want_findings={"team-frozen", "capacity-shortage"},
    ),
    "a quota that is switched off is left as it is and counted as taken": Case(
        document(share("a", 100), fixed("b", row(Count=1)), pool=False),
        nodes(5),
        {"a": 3, "b": 2},
        [quota("b", row(Count=2), activation_state="Disabled")],
        want_findings={"quota-disabled", "capacity-shortage"},
    ),
    "an update that failed is tried again": Case(
        document(fixed("b", row(Count=2)), pool=False),
        nodes(5),
        {"b": 2},
        [quota("b", row(Count=2), status="UpdateFailed")],
        want_changes=1,
        want_words="status UpdateFailed: the update is retried",
    ),
    "the reason why an update failed is told": Case(
        document(fixed("b", row(Count=2)), pool=False),
        nodes(5),
        {"b": 2},
        [
            quota("b", row(Count=2), status="UpdateFailed").model_copy(
                update={"failure_reason": "LocalQueue b is missing"}
            )
        ],
        want_changes=1,
        want_words="status UpdateFailed (LocalQueue b is missing): the update is retried",
    ),
    "a promise on a type without nodes is not granted": Case(
        document(fixed("a", row(P5, Count=3)), pool=False),
        nodes(1),
        {"a": 0},
        want_words="the type has no nodes; nothing is added",
        want_findings={"quota-without-nodes"},
        want_changes=0,
    ),
    "a quota on a type whose nodes are all gone stays, nothing is added": Case(
        document(fixed("a", row(P5, Count=3)), pool=False),
        nodes(1),
        {"a": 2},
        [quota("a", row(P5, Count=2))],
        want_findings={"quota-without-nodes"},
        want_changes=0,
    ),
    "a promise on a type without nodes is planned for where over-commitment is declared": Case(
        document(fixed("a", row(P5, Count=3)), capacity={"overcommitPercent": 1}, pool=False),
        nodes(1),
        {"a": 3},
        want_words="no nodes yet: declared over-commitment",
        want_findings={"quota-without-nodes"},
    ),
    "types that a document no longer promises are taken back": Case(
        document(fixed("a"), pool=False),
        nodes(3),
        {"a": 0},
        [quota("a", row(Count=3))],
        want_words="3 -> 0 ml.g5.8xlarge: the document guarantees none",
    ),
    "values that HyperPod filled in by ratio are no difference": Case(
        document(fixed("a", row(P5, Accelerators=2)), pool=False),
        nodes(1, P5),
        {"a": 2},
        [quota("a", row(P5, Accelerators=2, VCpu=48, MemoryInGiB=512))],
        want_changes=0,
    ),
    "values that somebody customised are a difference": Case(
        document(fixed("a", row(P5, Accelerators=2)), pool=False),
        nodes(1, P5),
        {"a": 2},
        [quota("a", row(P5, Accelerators=2, VCpu=64, MemoryInGiB=512))],
        want_changes=1,
        want_words="return to HyperPod's ratio",
    ),
    "accelerators are cut in whole accelerators": Case(
        document(fixed("a", row(P5, Accelerators=8)), fixed("b", row(P5, Accelerators=3)), pool=False),
        nodes(1, P5),
        {"a": 6, "b": 2},
        want_findings={"capacity-shortage"},
    ),
    "vCPUs are cut in whole vCPUs": Case(
        document(fixed("a", row(C5, VCpu=7)), fixed("b", row(C5, VCpu=5)), pool=False),
        nodes(1, C5),
        {"a": 5, "b": 3},
        want_findings={"capacity-shortage"},
    ),
    "memory is cut in whole GiB": Case(
        document(fixed("a", row(C5, MemoryInGiB=12)), fixed("b", row(C5, MemoryInGiB=12)), pool=False),
        nodes(1, C5),
        {"a": 8, "b": 8},
        want_findings={"capacity-shortage"},
    ),
    "partitions of a GPU count by their sevenths": Case(
        document(
            fixed("a", row(P5, AcceleratorPartition={"Type": "mig-1g.10gb", "Count": 40})),
            fixed("b", row(P5, AcceleratorPartition={"Type": "mig-3g.40gb", "Count": 10}), tier=2),
            pool=False,
        ),
        nodes(1, P5),
        {"a mig-1g.10gb": 40, "b mig-3g.40gb": 5},
        want_findings={"capacity-shortage"},
    ),
    "rows of several partitions of one type are each told": Case(
        document(
            fixed(
                "a",
                row(P5, Accelerators=2),
                row(P5, AcceleratorPartition={"Type": "mig-1g.10gb", "Count": 7}),
                row(P5, AcceleratorPartition={"Type": "mig-3g.40gb", "Count": 2}),
            ),
        ),
        nodes(1, P5),
        {"a mig-1g.10gb": 7, "a mig-3g.40gb": 2, "a": 2, "shared-pool": 4},
    ),
    "rows of several partitions are cut in proportion": Case(
        document(
            fixed(
                "a",
                row(P5, AcceleratorPartition={"Type": "mig-1g.10gb", "Count": 56}),
                row(P5, AcceleratorPartition={"Type": "mig-7g.80gb", "Count": 8}),
            ),
            pool=False,
        ),
        nodes(1, P5),
        {"a mig-1g.10gb": 28, "a mig-7g.80gb": 4},
        want_findings={"capacity-shortage"},
    ),
    "parts of a type that nobody knows stay out of a shortage of whole instances": Case(
        document(fixed("a", row("ml.x9.huge", Accelerators=4)), fixed("b", row("ml.x9.huge", Count=5)), pool=False),
        nodes(2, "ml.x9.huge"),
        {"a": 0, "b": 2},
        want_findings={"unknown-instance-type", "capacity-shortage"},
    ),
    "machines that are not HyperPod's are no capacity": Case(
        document(share("a", 100)), (*nodes(2), *nodes(3, "m5.large"), *nodes(1, "")), {"a": 2, "shared-pool": 0}
    ),
    "machines of plain EKS are capacity of the kueue backend": Case(
        document(share("a", 50, "ml.m5.xlarge"), cluster={"name": "c", "arn": ARN, "backend": "kueue"}),
        (*nodes(2, "ml.m5.xlarge"), *nodes(1, "")),
        {"a": 1, "shared-pool": 1},
    ),
    "quotas within a declared over-commitment are no finding": Case(
        document(fixed("a", row(Count=3)), capacity={"overcommitPercent": 50}, pool=False),
        nodes(2),
        {"a": 3},
        [quota("a", row(Count=3))],
        want_changes=0,
    ),
    "whole instances stay whole when parts are promised beside them": Case(
        document(fixed("a", row(P5, Count=2)), fixed("b", row(P5, Accelerators=4), tier=2), pool=False),
        (*nodes(1, P5), *broken(1, P5)),
        {"a": 1, "b": 0},
        want_findings={"capacity-shortage"},
    ),
    "what is really there is promised in parts at the basis allocatable (field report: 7.72 of 16 vCPU)": Case(
        document(share("a", 100, M5), capacity={"basis": "allocatable"}, pool=False),
        nodes(4, M5, allocatable={"cpu": 1930, "memory": 14 * GIBIBYTE}),
        {"a": 7},
    ),
    "two promised instances come to what two nodes offer at the basis allocatable (seed 001: 44 of 48 vCPU)": Case(
        document(fixed("a", row(G5_12, Count=2)), capacity={"basis": "allocatable"}),
        nodes(2, G5_12, allocatable={"cpu": 44_000, "memory": 164 * GIBIBYTE, "nvidia.com/gpu": 4}),
        {"a": 8, "shared-pool": 0},
    ),
    "a type that nobody knows is counted by what its nodes offer": Case(
        document(fixed("a", row("ml.x9.huge", Accelerators=4))),
        nodes(2, "ml.x9.huge", allocatable={"cpu": 95_000, "memory": 400 * GIBIBYTE, "nvidia.com/gpu": 16}),
        {"a": 4, "shared-pool": 28},
    ),
    "whole instances of a type that nobody knows are still divided": Case(
        document(share("a", 50, "ml.x9.huge")), nodes(4, "ml.x9.huge"), {"a": 2, "shared-pool": 2}
    ),
    "parts of a type that nobody knows are left alone, with a remedy": Case(
        document(fixed("a", row("ml.x9.huge", Accelerators=4))),
        nodes(2, "ml.x9.huge"),
        {"a": 1, "shared-pool": 0},
        [quota("a", row("ml.x9.huge", Accelerators=1))],
        want_findings={"unknown-instance-type"},
        want_changes=0,
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_teams_get(case: Case) -> None:
    world = snapshot(case.policy, case.nodes, case.quotas)
    plan = plan_quotas(world, mode="apply")
    assert counts(plan) == case.want
    words = [line.because for line in plan.allocations] + [change.because for change in plan.changes]
    assert any(case.want_words in sentence for sentence in [*words, ""])
    assert {finding.code for finding in plan.findings} == case.want_findings
    assert case.want_changes is None or len(plan.changes) == case.want_changes
    assert_settled(plan_quotas(applied(world, plan), mode="apply"))


def at_one_thread(world: Snapshot) -> Snapshot:
    """All nodes are of one group whose cores run one thread: half of the vCPUs."""
    types = tuple(
        GroupInstanceType(each, threads_per_core=1) for each in sorted({n.instance_type for n in world.nodes})
    )
    return replace(
        world,
        cluster=replace(world.cluster, instance_groups=(InstanceGroup("single", types),)),
        nodes=tuple(replace(node, instance_group="single") for node in world.nodes),
    )


def test_whole_instances_fit_with_one_thread_per_core_as_they_do_with_two() -> None:
    policy = document(share("team-a", 50, M5), share("team-b", 50, M5), pool=False)
    plan = plan_quotas(at_one_thread(snapshot(policy, (*nodes(4, M5), *broken(1, M5)))), mode="plan")
    assert counts(plan) == {"team-a": 2, "team-b": 2}
    assert plan.findings == ()
    assert "capacity 5 -> 4 healthy ml.m5.xlarge at one thread per core" in plan.allocations[0].because


def test_accelerators_bring_the_vcpus_that_are_there_with_one_thread_per_core() -> None:
    policy = document(fixed("team-a", row(P5, Accelerators=8)), fixed("team-b", row(P5, Accelerators=8)), pool=False)
    plan = plan_quotas(at_one_thread(snapshot(policy, nodes(2, P5))), mode="plan")
    assert counts(plan) == {"team-a": 8, "team-b": 8}
    assert plan.findings == ()


def test_promised_vcpus_are_short_when_multithreading_is_switched_off() -> None:
    promised = row(M5, VCpu=8, MemoryInGiB=32)
    policy = document(fixed("team-a", promised), fixed("team-b", promised, tier=2), pool=False)
    world = snapshot(policy, nodes(4, M5))
    assert counts(plan_quotas(world, mode="plan")) == {"team-a": 8, "team-b": 8}
    plan = plan_quotas(at_one_thread(world), mode="plan")
    assert [finding.code for finding in plan.findings] == ["capacity-shortage"]
    assert {line.team: line.after for line in plan.allocations if line.unit == "VCpu"} == {"team-a": 8, "team-b": 0}


@pytest.mark.parametrize("filled", [16, 8], ids=["nominal", "of the threads that run"])
def test_vcpus_that_hyperpod_filled_in_are_no_difference_with_one_thread_per_core(filled: float) -> None:
    policy = document(fixed("team-a", row(M5, MemoryInGiB=64)), pool=False)
    today = quota("team-a", row(M5, MemoryInGiB=64, VCpu=filled))
    plan = plan_quotas(at_one_thread(snapshot(policy, nodes(4, M5), [today])), mode="apply")
    assert [change.because for change in plan.changes if change.team] == []


def assert_settled(plan: Plan) -> None:
    assert [change.because for change in plan.changes] == []
    assert plan.outcome is Outcome.NOTHING_TO_DO


def test_the_whole_sentence_of_a_cut_is_reported() -> None:
    policy = document(fixed("team-a", row(P5, Count=5)), share("team-b", 60, P5, tier=2, floor=4), pool=False)
    world = snapshot(policy, (*nodes(10, P5), *broken(2, P5)), [quota("team-b", row(P5, Count=6))])
    [line] = [line for line in plan_quotas(world, mode="plan").allocations if line.team == "team-b"]
    assert line.because == (
        "team-b 6 -> 5: capacity 12 -> 10 healthy ml.p5.48xlarge, tier 2 gives first, 60 % of 10 usable, floor 4 kept"
    )
    assert (line.gpus_before, line.gpus_after, line.reason) == (48, 40, Reason.SHORTAGE)


def test_without_a_document_nothing_is_written_even_in_apply_mode() -> None:
    plan = plan_quotas(snapshot(None, nodes(2), [quota("a", row(Count=5))]), mode="apply")
    assert plan.outcome is Outcome.NOTHING_TO_DO
    [finding] = plan.findings
    assert finding.because == "Quotas guarantee 5 ml.g5.8xlarge, 2 are usable (250 %): capacity 2 ml.g5.8xlarge."


def test_a_document_that_breaks_rules_blocks_with_one_finding_for_each() -> None:
    violations = (Violation("teams[0].name", "A B", "lower case"), Violation("apiVersion", "v9", "taskgov/v1"))
    world = snapshot(None, nodes(2), [quota("a", row(Count=1))], policy_violations=violations)
    plan = plan_quotas(world, mode="plan")
    assert (plan.outcome, plan.changes) == (Outcome.BLOCKED, ())
    assert [finding.subject for finding in plan.findings] == ["teams[0].name", "apiVersion"]


def test_in_plan_mode_changes_are_only_planned() -> None:
    plan = plan_quotas(snapshot(document(fixed("a", row(Count=1))), nodes(2)), mode="plan")
    assert plan.outcome is Outcome.PLANNED
    assert [change.kind for change in plan.changes] == [ChangeKind.CREATE_QUOTA] * 2


def test_new_quotas_have_names_of_their_own() -> None:
    taken = quota("stranger", name="a-quota")
    plan = plan_quotas(snapshot(document(fixed("a", row(Count=1)), pool=False), nodes(2), [taken]), mode="plan")
    assert [change.name for change in plan.changes] == ["a-quota-2"]


def test_a_change_on_many_types_names_the_largest_and_counts_the_rest() -> None:
    types = (G5, P5, G6, C5, G5_12)
    policy = document(fixed("a", *(row(instance_type, Count=1) for instance_type in types)), pool=False)
    cluster = [node for instance_type in types for node in nodes(1, instance_type)]
    [change] = plan_quotas(snapshot(policy, cluster), mode="plan").changes
    assert change.because == (
        "0 -> 1 ml.p5.48xlarge: guaranteed 1; 0 -> 1 ml.g5.12xlarge: guaranteed 1; "
        "0 -> 1 ml.g6.12xlarge: guaranteed 1; and 2 more instance types"
    )


def test_a_changed_weight_is_said() -> None:
    policy = document({**fixed("a", row(Count=1)), "fairShareWeight": 7}, pool=False)
    plan = plan_quotas(snapshot(policy, nodes(1), [quota("a", row(Count=1))]), mode="plan")
    assert [change.because for change in plan.changes] == ["fair-share weight 0 -> 7"]


def test_a_promise_in_another_unit_is_reported_as_an_end_and_a_beginning() -> None:
    policy = document(fixed("a", row(P5, Accelerators=8)), pool=False)
    plan = plan_quotas(snapshot(policy, nodes(1, P5), [quota("a", row(P5, Count=1))]), mode="plan")
    assert [line.because for line in plan.allocations] == [
        "a 0 -> 8 Accelerators ml.p5.48xlarge: guaranteed 8 Accelerators",
        "a 1 -> 0 ml.p5.48xlarge: the document states it in another unit",
    ]


def test_a_pool_takes_at_most_the_rows_that_one_quota_may_have() -> None:
    sizes = ("", 2, 4, 8, 12, 16, 24, 48)
    types = [f"ml.{family}.{size}xlarge" for family in ("g5", "g6") for size in sizes]
    cluster = [node for n, instance_type in enumerate(types) for node in nodes(n + 1, instance_type)]
    world = snapshot(document(), cluster)
    plan = plan_quotas(world, mode="plan")
    rows = plan.changes[0].after.to_api()["ComputeQuotaResources"]
    assert [each["InstanceType"] for each in rows] == sorted(set(types) - {"ml.g5.xlarge"})
    assert_settled(plan_quotas(applied(world, plan), mode="apply"))


def test_a_cluster_policy_of_a_long_name_keeps_within_the_limit() -> None:
    world = snapshot(document(schedulerConfig={"FairShare": "Enabled"}, pool=False))
    world = replace(world, cluster=replace(world.cluster, name="c" * 63))
    assert [len(change.name) for change in plan_quotas(world, mode="plan").changes] == [63]


def test_the_pool_is_created_as_a_team_that_only_lends() -> None:
    plan = plan_quotas(snapshot(document(), nodes(2)), mode="plan")
    [change] = plan.changes
    assert change.target_after is not None
    assert change.target_after.team_name == "shared-pool"
    assert change.after.to_api() == {
        "ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}],
        "ResourceSharingConfig": {"Strategy": "Lend"},
    }


def test_what_the_document_does_not_say_stays_as_it_is() -> None:
    settings = {"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 70}, "PreemptTeamTasks": "Never"}
    today = quota("a", row(Count=1), weight=40, settings=settings)
    plan = plan_quotas(snapshot(document(fixed("a", row(Count=2)), pool=False), nodes(2), [today]), mode="plan")
    [change] = plan.changes
    assert change.after.to_api() == {"ComputeQuotaResources": [{"InstanceType": G5, "Count": 2}], **settings}
    assert change.target_after == today.compute_quota_target


def test_a_borrow_limit_that_changes_is_said() -> None:
    policy = document(fixed("a", row(Count=1), ResourceSharingConfig={"Strategy": "LendAndBorrow", "BorrowLimit": 100}))
    today = quota(
        "a", row(Count=1), settings={"ResourceSharingConfig": {"Strategy": "LendAndBorrow", "BorrowLimit": 50}}
    )
    [change] = [c for c in plan_quotas(snapshot(policy, nodes(1), [today]), mode="plan").changes if c.team == "a"]
    assert "BorrowLimit 50" in change.because
    assert "BorrowLimit 100" in change.because


def test_decreases_come_before_increases() -> None:
    policy = document(fixed("a", row(Count=4)), fixed("z", row(Count=1)), pool=False)
    world = snapshot(policy, nodes(5), [quota("a", row(Count=1)), quota("z", row(Count=4))])
    assert [change.team for change in plan_quotas(world, mode="plan").changes] == ["z", "a"]


def test_two_quotas_that_swap_types_give_in_one_wave_and_take_in_the_next() -> None:
    policy = document(fixed("a", row(P5, Count=2)), fixed("b", row(Count=2)), pool=False)
    world = snapshot(policy, (*nodes(2), *nodes(2, P5)), [quota("a", row(Count=2)), quota("b", row(P5, Count=2))])
    plan = plan_quotas(world, mode="apply")
    assert [(change.team, change.wave, change.is_low) for change in plan.changes] == [
        ("a", 1, True),
        ("b", 1, True),
        ("a", 2, False),
        ("b", 2, False),
    ]
    assert plan.recheck_at is None
    assert_settled(plan_quotas(applied(world, plan), mode="apply"))


def test_of_two_types_that_swap_the_low_write_keeps_the_lesser_of_both() -> None:
    policy = document(
        fixed("a", row(Count=1), row(P5, Count=3)), fixed("b", row(Count=3), row(P5, Count=1)), pool=False
    )
    quotas = [quota("a", row(Count=3), row(P5, Count=1)), quota("b", row(Count=1), row(P5, Count=3))]
    plan = plan_quotas(snapshot(policy, (*nodes(4), *nodes(4, P5)), quotas), mode="apply")
    [a, b] = [change.after.to_api()["ComputeQuotaResources"] for change in plan.changes if change.is_low]
    assert a == [{"InstanceType": G5, "Count": 1}, {"InstanceType": P5, "Count": 1}]
    assert b == [{"InstanceType": G5, "Count": 1}, {"InstanceType": P5, "Count": 1}]
    moves = [(change.gpus_before, change.gpus_after) for change in plan.changes]
    assert moves == [(11, 9), (25, 9), (9, 25), (9, 11)]


def test_native_idle_sharing_keeps_the_pool_out_of_its_way() -> None:
    policy = document(fixed("a", row(Count=1)), sharedPool={"native": True})
    assert counts(plan_quotas(snapshot(policy, nodes(4)), mode="plan")) == {"a": 1}


def test_the_cluster_policy_is_created_and_later_left_alone() -> None:
    wanted = {"FairShare": "Enabled", "PriorityClasses": [{"Name": "training", "Weight": 70}]}
    world = snapshot(document(schedulerConfig=wanted, pool=False), nodes(1))
    plan = plan_quotas(world, mode="apply")
    assert [(change.kind, change.name) for change in plan.changes] == [
        (ChangeKind.CREATE_SCHEDULER_CONFIG, "ml-cluster-policy")
    ]
    assert_settled(plan_quotas(applied(world, plan), mode="apply"))


def test_the_cluster_policy_is_updated_where_it_differs_and_keeps_what_is_not_said() -> None:
    first = snapshot(document(schedulerConfig={"FairShare": "Disabled", "IdleResourceSharing": "Disabled"}, pool=False))
    world = applied(first, plan_quotas(first, mode="apply"))
    later = snapshot(
        document(schedulerConfig={"FairShare": "Enabled"}, pool=False), scheduler_config=world.scheduler_config
    )
    [change] = plan_quotas(later, mode="apply").changes
    assert change.kind is ChangeKind.UPDATE_SCHEDULER_CONFIG
    assert change.after.to_api() == {"FairShare": "Enabled", "IdleResourceSharing": "Disabled"}


def recheck(policy: PolicyDocument, cluster: Sequence[Node]) -> datetime | None:
    return plan_quotas(snapshot(policy, cluster), mode="plan").recheck_at


def test_recheck_is_when_the_hold_time_ends() -> None:
    cluster = (*nodes(1), *broken(1, since=NOW - minutes(4)))
    assert recheck(document(), cluster) == NOW + minutes(6)


def test_recheck_is_when_a_new_node_has_been_healthy_long_enough() -> None:
    assert recheck(document(), nodes(1, healthy_since=FRESH)) == NOW + minutes(3)


def test_recheck_is_when_a_lease_starts() -> None:
    start = NOW + timedelta(hours=3)
    lease = {"to": "a", "from": "b", "instanceType": G5, "count": 1, "start": start, "end": NOW + timedelta(days=1)}
    assert recheck(document(leases=[{**lease, "reason": "test"}]), nodes(1)) == start


def test_nothing_to_come_means_no_recheck() -> None:
    assert recheck(document(share("a", 50)), (*nodes(3), *broken(2))) is None


def test_rows_that_list_a_type_twice_are_added_up_and_become_one() -> None:
    policy = document(fixed("a", row(Count=4)), pool=False)
    plan = plan_quotas(snapshot(policy, nodes(4), [quota("a", row(Count=2), row(Count=3))]), mode="apply")
    assert [(line.before, line.after) for line in plan.allocations] == [(5, 4)]
    assert [change.after.to_api()["ComputeQuotaResources"] for change in plan.changes] == [[row(Count=4)]]
