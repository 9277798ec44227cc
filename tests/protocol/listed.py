"""The conditions without which no invariant of the protocol breaks, each with the reason and what shows it.

`make test-protocol ARGS=--conditions` fails for one that is missed after all: then it is no longer to be listed.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class SecondLine:
    """Another condition stands behind it: with both taken away, the explorer finds what is wrong in a scenario.

    In that scenario neither is missed when it is taken away alone.
    """

    because: str
    other: str
    scenario: str


@dataclass(frozen=True, slots=True)
class OtherProof:
    """It is no matter of lock, hints and approvals, but of cost, of a bound, or of what is told: this test fails."""

    because: str
    test: str


MACHINE: Final = "tests/statemachines/test_reconcile.py"
WAVES: Final = "tests/statemachines/test_waves.py"
INTAKE: Final = "tests/services/test_receive_event.py"
EXCHANGE: Final = "Exchange the request for the lock"
LEAVES: Final = "a run that finds the lock taken leaves; it saves an execution for each event"

LISTED: Final[dict[str, SecondLine | OtherProof]] = {
    "Set the lock aside: 4. attribute_not_exists(askedChanges) is never met": SecondLine(
        "`<>` is met, too, where nothing was asked for",
        "Set the lock aside: 5. askedChanges <> :changes is never met",
        "an execution that is started by hand, and asks",
    ),
    "Take the lock: 5. attribute_not_exists(askedBy) is never met": SecondLine(
        "`<>` is met, too, where nothing was asked for",
        "Take the lock: 6. askedBy <> :me is never met",
        "two hints",
    ),
    "Keep the request: 1. askedBy = :me is always met": OtherProof(
        "it would change how long the request of a later run stands",
        f"{MACHINE}::TestApproval::test_an_older_request_that_is_approved_leaves_a_newer_one_standing",
    ),
    "Keep the request: 1. askedBy = :me is never met": OtherProof(
        "a request that ends while its approval waits for the lock; time is not modelled so finely",
        f"{MACHINE}::TestApproval::test_what_was_approved_stays_asked_for_until_its_run_has_the_lock",
    ),
    "Keep the rejection: 1. askedBy = :me is always met": OtherProof(
        "a later run whose request is no longer its own takes the lock without it when it is answered",
        f"{MACHINE}::TestApproval::test_a_rejection_of_an_older_request_leaves_a_newer_one_standing",
    ),
    f"{EXCHANGE}: 2. attribute_not_exists(lockOwner) is never met": SecondLine(
        "a lock that is released has neither owner nor lease",
        f"{EXCHANGE}: 4. attribute_not_exists(lockExpires) is never met",
        "an execution that is started by hand, and asks",
    ),
    f"{EXCHANGE}: 4. attribute_not_exists(lockExpires) is never met": SecondLine(
        "a lock that is released has neither owner nor lease",
        f"{EXCHANGE}: 2. attribute_not_exists(lockOwner) is never met",
        "an execution that is started by hand, and asks",
    ),
    f"{EXCHANGE}: 3. lockExpires < :now is never met": OtherProof(
        "the owner of a lease that ran out is looked for by the next hint, which frees the lock",
        f"{MACHINE}::TestApproval::test_an_approval_waits_for_the_run_that_holds_the_lock_meanwhile",
    ),
    "Was it read? 1. to 'Plan quotas' always": OtherProof(
        "without a snapshot there is no plan; it is about what is told",
        f"{MACHINE}::test_a_cluster_that_cannot_be_read_fails_no_run_and_frees_the_lock",
    ),
    "Was it read? 2. to 'Wait to read it again' always": OtherProof(
        "it bounds the tries", f"{MACHINE}::test_a_cluster_that_cannot_be_read_fails_no_run_and_frees_the_lock"
    ),
    "Was it read? 2. to 'Wait to read it again' never": OtherProof(
        "what could not be read is read by the resync, too",
        f"{MACHINE}::test_a_cluster_that_can_be_read_again_soon_is_planned_for",
    ),
    "Approval in hand? 1. to 'Wait for the lock' always": OtherProof(
        "one without an approval may wait for the lock as well, and holds up nobody but itself",
        f"{MACHINE}::test_a_run_leaves_a_cluster_to_the_run_that_holds_the_lock",
    ),
    "Approval in hand? 2. to 'Note what went wrong' always": OtherProof(
        "a run that wrote nothing may have a record as well, which says that another run holds the lock",
        f"{MACHINE}::test_a_run_leaves_a_cluster_to_the_run_that_holds_the_lock",
    ),
    "Approval in hand? 2. to 'Note what went wrong' never": OtherProof(
        "refused writes are not modelled: only a run that plans around one takes the lock after it has written",
        f"{WAVES}::TestRefused::test_a_run_that_may_not_plan_again_because_another_took_the_lock_is_on_record",
    ),
    "Approval in hand? 3. to 'Note what went wrong' always": OtherProof(
        "a run without an approval may have a record as well, which says that another run holds the lock",
        f"{MACHINE}::test_a_run_leaves_a_cluster_to_the_run_that_holds_the_lock",
    ),
    "Approval in hand? 3. to 'Note what went wrong' never": OtherProof(
        "an hour of waiting is not modelled; it is about what is told",
        f"{MACHINE}::TestApproval::test_an_approval_that_waited_for_an_hour_is_on_record_as_not_applied",
    ),
    "Choose by outcome 2. to 'Note what went wrong' never": OtherProof(
        "refused writes are not modelled: what was refused is told before an approval is asked for",
        f"{WAVES}::TestRefused::test_a_run_that_was_refused_a_write_is_unfinished_whatever_the_next_plan_says",
    ),
    "Choose by outcome 4. to 'Note what went wrong' never": OtherProof(
        "a plan without progress is not modelled: nothing is written either way, and the run says failed",
        f"{WAVES}::test_a_plan_without_progress_fails_once_writes_nothing_and_is_looked_at_again_when_time_changes_it",
    ),
    "Remind or let it expire 1. to 'Send the request' never": OtherProof(
        "people are reminded; nothing is written without their answer either way",
        f"{MACHINE}::TestApproval::test_a_request_is_repeated_once_and_then_expires_without_a_write",
    ),
    "Rounds left? 1. to 'No rounds left' never": OtherProof(
        "it bounds the history", f"{MACHINE}::test_conflicts_without_end_fail_the_run"
    ),
    "Rounds left? 2. to 'Exchange the request for the lock' always": OtherProof(
        "it saves a call that is refused", f"{MACHINE}::test_conflicts_without_end_fail_the_run"
    ),
    "Rounds left? 2. to 'Exchange the request for the lock' never": OtherProof(
        "the lock is refused then, and the request exchanged for it half a minute later",
        f"{MACHINE}::TestApproval::test_an_approval_takes_a_free_lock_at_once",
    ),
    "Is it still so? 1. to 'Apply changes' always": OtherProof(
        "a second look before the first write is a rule for plans; versions keep a late write from harm",
        f"{MACHINE}::TestLookingTwice::test_a_plan_is_made_again_from_a_fresh_snapshot_right_before_the_first_write",
    ),
    "Is it still so? 2. to 'Read snapshot' always": OtherProof(
        "it bounds the looks", f"{MACHINE}::TestLookingTwice::test_a_world_that_never_keeps_still_is_not_written_to"
    ),
    "Will time change it? 1. to 'Look again then' never": OtherProof(
        "what time alone changes is not modelled; what failed is repaired by the resync, too",
        f"{MACHINE}::test_a_plan_that_time_alone_will_change_is_looked_at_again_then",
    ),
    "Once more? 1. to 'Begin a run' always": OtherProof(
        "it bounds the history",
        f"{MACHINE}::test_a_cluster_that_never_keeps_still_is_let_go_after_twenty_rounds_and_another_execution_is_due",
    ),
    "Once more? 1. to 'Begin a run' never": OtherProof(
        "another execution, a minute later, sees the hint as well",
        f"{MACHINE}::test_hints_that_come_during_a_run_cause_one_more_run_and_not_more",
    ),
    "How did it end? 1. to 'Run failed' always": OtherProof(
        "the lock is free by then; it is about what is told",
        f"{MACHINE}::test_a_run_without_changes_publishes_and_leaves_the_lock_free",
    ),
    "How did it end? 1. to 'Run failed' never": OtherProof(
        "the lock is free by then; it is about what is told",
        f"{MACHINE}::test_a_table_that_is_down_fails_the_run_and_is_reported",
    ),
    "EndedOwner.of_execution leaves the request of a run that is over": SecondLine(
        "a run follows one that was stopped; its hint withdraws the request",
        "EndedOwner.of_hint leaves the request of a run that is over",
        "an approval",
    ),
    "EndedOwner.of_hint leaves the request of a run that is over": SecondLine(
        "the event of the end withdraws the request; where that is lost, the request ends by itself",
        "EndedOwner.of_execution leaves the request of a run that is over",
        "an approval",
    ),
    "Forget the request: 1. askedBy = :me is always met": OtherProof(
        "a later run whose request is removed makes it again at its next look",
        f"{MACHINE}::TestApproval::test_a_request_that_cannot_be_kept_leaves_a_newer_one_standing",
    ),
    "Forget the request: 1. askedBy = :me is never met": OtherProof(
        "a request that is left ends by itself, and the next round makes it again",
        f"{MACHINE}::TestApproval::test_a_request_that_cannot_be_kept_is_made_anew",
    ),
    "Holds the lock? 1. to 'Release the lock' always": OtherProof(
        "the release compares owner and token, so a run without the lock releases nothing",
        f"{MACHINE}::test_letting_go_of_a_lock_that_fails_does_not_change_the_outcome",
    ),
    "EndedOwner.of_hint asks about no owner": OtherProof(
        "without it the lease runs out, and the next resync repairs; it saves up to five minutes and an hour",
        f"{INTAKE}::test_a_hint_frees_a_lock_that_looks_old_when_its_owner_is_over",
    ),
    "manual_lock._release does not compare the token": SecondLine(
        "each command is an owner of its own",
        "manual_lock._release does not compare the owner",
        "two commands and a delay",
    ),
    "Table.end_lease does not compare the owner": OtherProof(
        "each take has a token of its own, which is compared; the owner counts where a table was exchanged",
        "tests/adapters/test_state_store.py::test_a_lease_is_ended_only_for_the_owner_and_token_that_were_seen",
    ),
    "Table.end_lease does not compare the token": OtherProof(
        "a redriven run whose lease is ended by mistake writes nothing more, and the run that follows does the rest",
        "tests/adapters/test_state_store.py::test_a_lease_is_ended_only_for_the_owner_and_token_that_were_seen",
    ),
    "Lock.is_held sees no lock": OtherProof(
        LEAVES, f"{INTAKE}::test_while_a_run_holds_the_lock_only_the_generation_moves"
    ),
    "ReceiveEvent._mark always starts a run": OtherProof(
        LEAVES, f"{INTAKE}::test_while_a_run_holds_the_lock_only_the_generation_moves"
    ),
}
