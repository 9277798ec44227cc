from fractions import Fraction
from typing import Any

import pytest

from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ComputeQuota
from taskgov.kueue.render import KueueVersion, Manifest, render
from taskgov.quantities import format_quantity
from taskgov.usage.quota_usage import FairShare, QuotaUsage, Usage, team_of, usage_of

GPU = "nvidia.com/gpu"
G5 = "ml.g5.12xlarge"


def a_queue(
    team: str,
    used: dict[str, str] | None = None,
    *,
    instances: int = 1,
    strategy: str = "LendAndBorrow",
    borrow_limit: int = 100,
    version: KueueVersion = "v1beta1",
) -> Manifest:
    quota = ComputeQuota.model_validate(
        {
            "ComputeQuotaId": "abcdefghijkl",
            "Name": team,
            "ComputeQuotaVersion": 1,
            "Status": "Created",
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": [{"InstanceType": G5, "Count": instances}],
                "ResourceSharingConfig": {"Strategy": strategy, "BorrowLimit": borrow_limit},
            },
            "ComputeQuotaTarget": {"TeamName": team, "FairShareWeight": 1},
        }
    )
    [queue] = render([quota], None, InstanceTypeTable(), version).cluster_queues
    return with_usage(queue, G5, used or {})


def with_usage(queue: Manifest, flavor: str, used: dict[str, str]) -> Manifest:
    resources = [{"name": name, "total": total, "borrowed": "0"} for name, total in used.items()]
    return {**queue, "status": {"flavorsReservation": [{"name": flavor, "resources": resources}]}}


def line(usage: Usage, team: str, resource: str = GPU) -> QuotaUsage:
    [found] = [one for one in usage.of_team(team) if one.resource == resource]
    return found


def test_the_borrowed_figures_of_the_workshop() -> None:
    """Two pods of 44 cpu, 164Gi and 4 GPUs on one's own instance and a borrowed one."""
    held = {"cpu": "88", "memory": "328Gi", GPU: "8", "aws.amazon.com/neurondevice": "0", "vpc.amazonaws.com/efa": "0"}

    usage = usage_of([a_queue("team-a", held), a_queue("team-b")])

    shown = {one.resource: format_quantity(one.resource, one.borrowed) for one in usage.of_team("team-a")}
    assert shown == {
        "aws.amazon.com/neurondevice": "0",
        "cpu": "40",
        "memory": "136Gi",
        GPU: "4",
        "vpc.amazonaws.com/efa": "0",
    }
    lent = {one.resource: format_quantity(one.resource, one.lent) for one in usage.of_team("team-b")}
    assert lent == shown


def test_guaranteed_and_used_fall_apart_into_their_parts() -> None:
    usage = usage_of([a_queue("team-a", {GPU: "6"}), a_queue("team-b", {GPU: "1"})])

    a, b = line(usage, "team-a"), line(usage, "team-b")
    assert (a.guaranteed, a.used, a.own_use, a.borrowed, a.over_quota) == (4, 6, 4, 2, 0)
    assert (b.guaranteed, b.own_use, b.lent, b.idle) == (4, 1, 2, 1)
    assert all(one.guaranteed == one.own_use + one.lent + one.idle for one in usage.lines)
    assert a.borrow_limit_utilisation == Fraction(1, 2)


def test_what_is_used_outside_the_cohort_is_over_quota() -> None:
    usage = usage_of([a_queue("alone", {GPU: "6"}, strategy="DontLend"), a_queue("team-b")])

    assert line(usage, "alone").over_quota == 2
    assert line(usage, "alone").borrow_limit == 0
    assert line(usage, "alone").borrow_limit_utilisation is None
    assert line(usage, "team-b").idle == 4


def test_an_instance_type_that_was_taken_from_a_team_is_over_quota_while_its_work_runs() -> None:
    usage = usage_of([with_usage(a_queue("team-a"), "ml.p5.48xlarge", {GPU: "8"})])

    [gone] = [one for one in usage.lines if one.instance_type == "ml.p5.48xlarge"]
    assert (gone.guaranteed, gone.used, gone.over_quota, gone.borrow_limit) == (0, 8, 8, 0)


def test_without_a_limit_there_is_no_utilisation() -> None:
    queue = a_queue("team-a", {GPU: "6"})
    for resource in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]:
        del resource["borrowingLimit"]

    usage = usage_of([queue, a_queue("team-b")])

    assert line(usage, "team-a").borrow_limit is None
    assert line(usage, "team-a").borrow_limit_utilisation is None
    assert line(usage, "team-a").borrowed == 2


def test_what_is_admitted_stands_in_where_nothing_is_reserved() -> None:
    queue = a_queue("team-a", {GPU: "3"})
    queue["status"] = {"flavorsUsage": queue["status"]["flavorsReservation"]}

    assert line(usage_of([queue]), "team-a").used == 3


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_both_versions_of_the_api_are_read(version: KueueVersion) -> None:
    usage = usage_of([a_queue("team-a", {GPU: "5"}, version=version), a_queue("team-b", version=version)])

    assert line(usage, "team-a").borrowed == line(usage, "team-b").lent == 1


def test_queues_under_one_root_share_and_a_cohort_lends_its_own_quota() -> None:
    left, right = a_queue("team-a", {GPU: "6"}), a_queue("team-b", {GPU: "4"})
    left["spec"]["cohort"], right["spec"]["cohort"] = "left", "right"
    quota = [{"coveredResources": [GPU], "flavors": [{"name": G5, "resources": [{"name": GPU, "nominalQuota": 3}]}]}]
    cohorts: list[Any] = [
        {"metadata": {"name": "left"}, "spec": {"parentName": "top"}},
        {"metadata": {"name": "right"}, "spec": {"parent": "top"}},
        {"metadata": {"name": "top"}, "spec": {"resourceGroups": quota}},
    ]

    usage = usage_of([left, right], cohorts)

    assert line(usage, "team-a").borrowed == 2
    assert (line(usage, "top").lent, line(usage, "top").idle) == (2, 1)
    assert line(usage_of([left, right]), "team-a").over_quota == 2


def test_cohorts_in_a_circle_do_not_hang_the_reader() -> None:
    queues = [a_queue("team-a", {GPU: "6"}), a_queue("team-b")]
    queues[1]["spec"]["cohort"] = "other"
    circle = [
        {"metadata": {"name": "shared-pool"}, "spec": {"parentName": "other"}},
        {"metadata": {"name": "other"}, "spec": {"parentName": "shared-pool"}},
    ]

    assert line(usage_of(queues, circle), "team-a").borrowed == 2


def test_an_infinite_share_is_a_flag_and_no_number() -> None:
    infinite, finite, silent = a_queue("a"), a_queue("b"), a_queue("c")
    infinite["status"]["fairSharing"] = {"weightedShare": 9223372036854775807}
    finite["status"]["fairSharing"] = {"weightedShare": 125}

    assert usage_of([infinite, finite, silent]).fair_shares == (
        FairShare("a", 1.0, None, infinite=True),
        FairShare("b", 1.0, 125, infinite=False),
        FairShare("c", 1.0, None, infinite=False),
    )


def test_a_queue_belongs_to_the_team_of_its_label_or_name_or_to_itself() -> None:
    queue = a_queue("team-a")
    assert team_of(queue) == "team-a"
    assert team_of({"metadata": {"name": "hyperpod-ns-nlp-clusterqueue"}}) == "nlp"
    assert team_of({"metadata": {"name": "default"}}) == "default"


def test_lines_come_in_the_same_order_whatever_the_order_of_queues() -> None:
    queues = [a_queue("team-b", {GPU: "1"}), a_queue("team-a", {GPU: "6"})]

    assert usage_of(queues) == usage_of(reversed(queues))
    assert [one.team for one in usage_of(queues).lines] == ["team-a"] * 5 + ["team-b"] * 5


def test_what_is_reserved_counts_before_what_is_admitted_as_for_kueues_scheduler() -> None:
    queue = a_queue("team-a", {GPU: "3"})
    admitted = [{"name": G5, "resources": [{"name": GPU, "total": "1"}]}]
    queue["status"]["flavorsUsage"] = admitted
    assert line(usage_of([queue]), "team-a").used == 3
    del queue["status"]["flavorsReservation"]
    assert line(usage_of([queue]), "team-a").used == 1
