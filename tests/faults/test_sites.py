"""Which faults make sense where."""

import pytest

from tests.faults.sites import (
    DELIVERY,
    KUBERNETES,
    MACHINE,
    OF_LISTS,
    OF_STATES,
    STATES,
    Call,
    Kind,
    Site,
    cells,
    conflict_code,
    kinds,
    pairs,
    sample,
    sites,
)

READ = Call("ReadSnapshotRole", "sagemaker", "DescribeCluster")
WRITE = Call("ApplyChangeRole", "sagemaker", "UpdateComputeQuota")


def test_of_a_write_every_occurrence_is_a_site_and_of_a_read_the_first_and_the_last() -> None:
    writes, reads = [Site(WRITE, number) for number in (1, 2, 3)], [Site(READ, 1), Site(READ, 4)]
    assert sites([READ] * 4 + [WRITE] * 3) == writes + reads


def test_a_read_has_no_after_and_no_twice() -> None:
    assert not set(kinds(READ)) & {Kind.TIMEOUT_AFTER, Kind.CRASH_AFTER, Kind.DUPLICATE, Kind.CONFLICT}


def test_a_write_of_a_quota_can_meet_everything() -> None:
    assert set(kinds(WRITE)) == set(Kind) - {Kind.LOST, Kind.NEVER_ANSWERS, *OF_LISTS, *OF_STATES}


def test_lists_of_quotas_and_of_cluster_policies_can_be_late() -> None:
    assert set(OF_LISTS) <= set(kinds(Call("ReadSnapshotRole", "sagemaker", "ListComputeQuotas")))
    assert not set(OF_LISTS) & set(kinds(READ))


def test_a_state_machine_does_not_crash() -> None:
    assert not set(kinds(Call(MACHINE, "lambda", "Invoke"))) & {Kind.CRASH_BEFORE, Kind.CRASH_AFTER}


def test_a_function_may_never_answer_the_state_machine() -> None:
    assert Kind.NEVER_ANSWERS in kinds(Call(MACHINE, "lambda", "Invoke"))


def test_an_execution_can_be_stopped_or_time_out_at_every_state() -> None:
    apply = Call(MACHINE, STATES, "Apply changes")
    assert sites([apply] * 3) == [Site(apply, number) for number in (1, 2, 3)]
    assert kinds(apply) == [Kind.STOPPED, Kind.TIMED_OUT]


def test_a_delivery_is_doubled_late_or_lost() -> None:
    assert kinds(Call("EventBridge", *DELIVERY)) == [Kind.DUPLICATE, Kind.LATE, Kind.LOST]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (WRITE, "ConflictException"),
        (Call("ReceiveEventRole", "stepfunctions", "StartExecution"), "ExecutionAlreadyExists"),
        (Call(MACHINE, "dynamodb", "UpdateItem", conditional=True), "ConditionalCheckFailedException"),
        (Call("ReceiveEventRole", "dynamodb", "UpdateItem"), None),
        (Call("ReadSnapshotRole", KUBERNETES, "GET /api/v1/nodes"), None),
    ],
)
def test_the_service_s_model_says_what_a_conflict_is_called(call: Call, code: str | None) -> None:
    assert conflict_code(call) == code


def test_a_sample_has_every_call_and_every_kind_and_is_drawn_again_by_its_seed() -> None:
    where = sites([READ] * 4 + [WRITE] * 3 + [Call(MACHINE, "lambda", "Invoke")] * 2)
    every = list(cells(where))
    drawn = sample(where, 30, 1)
    assert (len(set(drawn)), drawn, set(drawn) <= set(every)) == (30, sample(where, 30, 1), True)
    assert {cell.kind for cell in drawn} == {cell.kind for cell in every}
    assert {cell.site.call for cell in drawn} == {cell.site.call for cell in every}
    assert drawn != sample(where, 30, 2)
    assert set(sample(where, len(every), 1)) == set(every)
    with pytest.raises(ValueError, match="5 cells are too few"):
        sample(where, 5, 1)


def test_a_call_more_changes_hardly_any_pair_but_those_that_have_it() -> None:
    calls = [READ] * 4 + [WRITE] * 3 + [Call(MACHINE, "lambda", "Invoke")] * 2
    before = pairs(sites(calls), 100, 20)
    after = pairs(sites([*calls, Call("ReadSnapshotRole", "sagemaker", "ListTags")]), 100, 20)
    assert (len(set(before)), before) == (100, pairs(sites(calls), 100, 20))
    assert len(set(before) & set(after)) > 50
    assert all(first.site != other.site for first, other in before)
    assert set(before) != set(pairs(sites(calls), 100, 21))
    with pytest.raises(ValueError, match="there are 12 pairs, not 13"):
        pairs(sites([READ]) + sites([Call(MACHINE, STATES, "Apply changes")]), 13, 1)
