"""Findings about the policy document alone: what it may say and probably does not mean.

`taskgov validate` shows them before a document is in force; each plan carries those of the document that is.
"""

from typing import Final

from taskgov.findings import Severity
from taskgov.findings.kind import FindingKind

UNKNOWN_INSTANCE_TYPE: Final = FindingKind(
    code="unknown-instance-type",
    severity=Severity.WARNING,
    means="a quota in parts of a type whose numbers are unknown",
    sentence="The resources of {instance_type} are not known, so quotas on it cannot be completed or compared.",
    remedy=(
        "add `instanceTypes: {{{instance_type}: {{vcpu: .., memoryGiB: .., gpu: .., neuronDevice: .., efa: ..}}}}` to "
        "the policy document (numbers: aws ec2 describe-instance-types --instance-types {ec2_name})"
    ),
    found_in=("hyperpod/instance_types.py",),
)
UNKNOWN_FAMILY: Final = FindingKind(
    code="unknown-family",
    severity=Severity.WARNING,
    means="a family without known types: it may be new, or misspelt",
    sentence="No known instance type is of {family}: {team} has nothing until a node is.",
    remedy="correct it, unless the family is new",
    found_in=("policy/warnings.py",),
)
NO_ACCELERATORS: Final = FindingKind(
    code="no-accelerators",
    severity=Severity.WARNING,
    means="a quota of accelerators on a type that has none",
    sentence="{instance_type} has no accelerators, and the quota has {count}.",
    remedy="set VCpu or MemoryInGiB",
    found_in=("policy/warnings.py",),
)
NO_ACCELERATORS_TO_COUNT: Final = FindingKind(
    code="no-accelerators",
    severity=Severity.WARNING,
    means="a share or lease counts accelerators of a type that has none",
    sentence="{instance_type} has no accelerators to count in.",
    remedy="count in vcpu, memoryInGiB or instances",
    found_in=("policy/warnings.py",),
)
UNSUPPORTED_PARTITION: Final = FindingKind(
    code="unsupported-partition",
    severity=Severity.WARNING,
    means="a MIG profile that the GPUs of the type do not have",
    sentence="{instance_type} has no partitions of {profile} (it has: {profiles}).",
    remedy="choose a profile of the type",
    found_in=("policy/warnings.py",),
)
SHARE_MAY_BE_NOTHING: Final = FindingKind(
    code="share-may-be-nothing",
    severity=Severity.WARNING,
    means="a small share in whole instances of large machines: with few machines it rounds to nothing",
    sentence=(
        "{percent:g} % of {instance_type} is less than one instance while fewer than {instances} are usable: {team} "
        "can be left with nothing."
    ),
    remedy="count it in parts (unit: accelerators), or give it a floor",
    found_in=("policy/warnings.py",),
)
PROMISE_BESIDE_THE_WHOLE: Final = FindingKind(
    code="quota-beside-the-whole",
    severity=Severity.WARNING,
    means="percentages divide all of a type, and another quota exists on it",
    sentence="Percentages divide all of {instance_type}, and {what} stands beside them: together they never fit.",
    remedy="write weight instead of percent (weights divide what fixed quotas leave), or lower the percentages",
    found_in=("policy/warnings.py",),
)
BORROW_LIMIT_IGNORED: Final = FindingKind(
    code="borrow-limit-ignored",
    severity=Severity.WARNING,
    means="a borrow limit of a team that does not borrow",
    sentence="{team} has a borrow limit, but with Strategy {strategy} it never borrows.",
    remedy="leave the limit out, or choose LendAndBorrow",
    found_in=("policy/warnings.py",),
)
BORROW_LIMIT_ABOVE_500: Final = FindingKind(
    code="borrow-limit-above-500",
    severity=Severity.WARNING,
    means="a borrow limit that the API's model accepts but the guide does not",
    sentence="{team} may borrow {percent:,} %: the API's model accepts up to 10,000, its guide up to 500.",
    remedy="set BorrowLimit to 500 or less unless the API of your Region is known to accept more",
    found_in=("policy/warnings.py",),
)
BORROW_LIMIT_ROUNDS_TO_ZERO: Final = FindingKind(
    code="borrow-limit-rounds-to-zero",
    severity=Severity.WARNING,
    means="a borrow limit of less than one accelerator; the audit finds it in quotas too",
    sentence="{percent} % of {amount} {resource} on {instance_type} is less than one: {team} can borrow none.",
    remedy="set BorrowLimit to {least} or more to let {team} borrow one",
    found_in=("hyperpod/borrowing.py",),
)
NO_TEAMS: Final = FindingKind(
    code="no-teams",
    severity=Severity.WARNING,
    means="a document without teams: every quota stays as it is",
    sentence="The document has no teams, so no team's quota follows the cluster.",
    remedy="name the teams with their quotas or shares; taskgov init writes the present ones of the cluster",
    found_in=("policy/warnings.py",),
)
TEAM_WITHOUT_PROMISE: Final = FindingKind(
    code="team-without-quota",
    severity=Severity.WARNING,
    means="a team with neither quota nor share has only what it leases and borrows",
    sentence="{team} has neither a quota nor a share, so it is guaranteed nothing.",
    remedy="give it a quota or a share",
    found_in=("policy/warnings.py",),
)
LEASE_BEYOND_DONOR: Final = FindingKind(
    code="lease-beyond-donor",
    severity=Severity.WARNING,
    means="a lease of more than the document gives its donor: each plan refuses it",
    sentence="{donor} has {has} {instance_type} in the document, and cannot lend {count} to {borrower}.",
    remedy="lease fewer, set partial: true, or raise the quota of {donor}",
    found_in=("policy/warnings_leases.py",),
)
NOBODY_KEEPS_REMAINDER: Final = FindingKind(
    code="nobody-keeps-remainder",
    severity=Severity.WARNING,
    means="HyperPod is to keep the shared pool, and keeps none while `IdleResourceSharing` is not `Enabled`",
    sentence="sharedPool is native, and IdleResourceSharing is not Enabled: nobody can borrow what no team has.",
    remedy="set schedulerConfig.IdleResourceSharing to Enabled, or name a team of your own as the pool",
    found_in=("policy/warnings.py",),
)
DEMAND_WILL_NEVER_MOVE: Final = FindingKind(
    code="demand-never-moves",
    severity=Severity.WARNING,
    means="`maxMovePercent` of a fixed quota is less than one instance",
    sentence="Demand never moves any of {count} {instance_type}: {percent:g} % is less than one.",
    remedy="set demand.maxMovePercent to {smallest_percent:g} or more",
    found_in=("policy/warnings.py",),
)
