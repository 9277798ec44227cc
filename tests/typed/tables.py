"""What the test has to know beside the pages: words to fill in, files that are there, and what is not typed here.

Each table is exact: `test_tables.py` fails for a row that nothing needs.
"""

from __future__ import annotations

import re
from typing import Final, Literal

WORDS: Final = {
    "BUCKET": "$(out BucketName)",
    "CLUSTER": "ml-cluster",
    "CONTEXT": "plain-eks",
    "CLUSTER_ARN": "arn:aws:sagemaker:us-east-1:111122223333:cluster/abcdefghijkl",
    "EKS_CLUSTER": "ml-eks",
    "EXECUTION_ARN": "$(aws stepfunctions list-executions --state-machine-arn $(out ReconcileStateMachineArn) "
    "--query 'executions[0].executionArn' --output text)",
    "FILE": "ml-cluster.yaml",
    "JOB": "team-a/training",
    "NAME": "training",
    "POLICY": "plain-eks.yaml",
    "NAMESPACE": "hyperpod-ns-team-a",
    "ROLE": "data-scientist",
    "ROLE_ARN": "arn:aws:iam::111122223333:role/data-scientist",
    "TABLE": "$(out TableName)",
    "TASK": "training",
    "TEAM": "team-a",
    "TEAM/JOB": "team-a/training",
    "TRACE": "philly.csv",
    "WORKLOAD": "team-a/training",
}
"""Words in capitals that the reader fills in, and what is filled in here. `test_by_hand.py` looks up `PLAN_ID`."""

FILES: Final = {
    "advised.yaml": "events/local/policy.yaml",
    "helios-earth-2020": "tests/typed/files/helios",
    "job.yaml": "examples/jobs/granular/gpu-training-job.yaml",
    "kueue-cases": "tests/typed/files/kueue-cases",
    "ml-cluster.json": "events/local/snapshot.json",
    "ml-cluster.yaml": "events/local/policy.yaml",
    "new.yaml": "events/local/policy.yaml",
    "philly-2017/philly.csv": "tests/typed/files/philly.csv",
    "philly.csv": "tests/typed/files/philly.csv",
    "plain-eks.yaml": "tests/typed/files/plain-eks.yaml",
    "policies/ml-cluster.yaml": "events/local/policy.yaml",
    "policy.yaml": "events/local/policy.yaml",
    "prices.yaml": "tests/typed/files/prices.yaml",
}
"""Files that pages name as the reader's own."""

ACCOUNTS: Final[dict[str, Literal["apply", "bare", "plain-eks"]]] = {
    r"taskgov (approve|reject|rollback|apply --policy FILE --reviewed)": "apply",
    r"taskgov init .*--team": "bare",
    r"taskgov (?:adopt|doctor plain-eks|init plain-eks)": "plain-eks",
}
"""Which account a command needs, if not the usual one.

Plans wait in `apply` mode, `bare` has no quotas yet, and `plain-eks` has no HyperPod.
"""

UNSET: Final = {"taskgov init plain-eks": "plain-eks.yaml", "taskgov init ": "ml-cluster.yaml"}
"""Files that are not there yet when a command begins like this: it writes them."""

WATCHED: Final = "timeout 20 "
"""What a command with --watch is typed behind."""
TIMED_OUT: Final = 124
"""How `timeout` of GNU coreutils ends when time is up."""

UNBUILT: Final = (re.compile(r"^taskgov preflight\b"), "taskgov preflight --built nothing-built")
"""What a command that reads the output of `sam build` is typed as: this checkout may be built for one architecture,
and pages name both."""

ENDS: Final = {
    "taskgov audit -s examples/snapshot.json -o reports": (1, "a finding is an error (docs/cli.md, exit codes)"),
    "taskgov adopt plain-eks.yaml --context plain-eks": (1, "there are queues to adopt (its help)"),
    "taskgov adopt POLICY --context CONTEXT": (1, "the same"),
    "taskgov reject plan-4e41121266fc0018": (1, "it was approved before"),
    "taskgov audit --cluster ml-cluster --stack taskgov -o reports --fail-on warning": (1, "there are findings"),
    "taskgov status --cluster ml-cluster --watch": (TIMED_OUT, "it looks until somebody ends it"),
}
"""Commands that end with another exit code than 0, as the page says."""

NOT_TYPED: Final = {
    "sam": "needs Docker, or CloudFormation's change sets: `make test-slow`, `make test-local-invoke`",
    "TASKGOV_REVISION=$(date +%s) sam": "the same",
    "pip install": "needs the package index: tests/cli/test_installed.py installs the package in `make test-slow`",
    "pipx install": "the same",
    "python": "`.ci/run` makes worlds with it, and docs/scale.md measures by it",
    "TASKGOV_UPDATE_GOLDEN=1": "writes into the checkout; `make test` runs these tests",
    "curl": "needs a name server for the entry's host; `taskgov approve` sends the same order",
    "kubectl apply -f docs/rbac.yaml": "the embedded cluster has these rights; `make test-cluster` gives them",
    "kubectl delete -f docs/rbac.yaml": "the same",
    "sed s/team-a/nlp/g docs/rbac-team.yaml | kubectl apply": "the same",
    "aws cloudformation detect-stack-drift": "the embedded account compares nothing with the template",
    "aws logs tail": "version 2 of the AWS CLI has it, which is no package of the index",
    "aws sqs start-message-move-task": "the embedded account moves no messages between queues",
    "aws lambda invoke": "needs Docker: `make test-local-invoke` types it",
    "aws cloudformation continue-update-rollback": "needs a deployment that failed",
    "aws cloudformation deploy": "the embedded account takes no change set of another template",
    "kubectl -n kueue-system logs": "the embedded cluster runs no manager of Kueue, which it models",
    "cd examples/terraform": "needs the provider from Terraform's registry",
    "taskgov local": "is what everything is typed against",
    "taskgov smoke ml-sandbox": "needs a real account: `make smoke` plays it on the embedded one",
}
"""Beginnings of commands that are not typed, and why. `make` is not among them: see `test_tables.py`."""

NOT_RUN: Final = {
    "audit-deps": "asks the index's advisory service",
    "bench": "measures: minutes",
    "bench-advise": "measures: minutes, on a trace that is not ours",
    "bench-engine": "measures: minutes",
    "bench-futures": "measures: minutes",
    "bench-lambda": "needs Docker, and measures",
    "bench-when": "measures: minutes",
    "conformance": "needs recorded cases; tests/scheduling/test_conformance.py has some",
    "cost": "measures with ARGS=--measure; tests/cost checks what it wrote",
    "help": "lists the targets",
    "iam-reference": "reads AWS's service authorization reference",
    "kueue-tables": "needs Go and minutes",
    "lines": "counts lines of code",
    "local": "serves until Ctrl-C",
    "pictures": "draws anew what is in docs/pictures",
    "sam": "installs; `make test-slow` needs it",
    "sbom": "`make test-slow` writes it too",
    "test-estimates": "minutes; `make test-long` plays a sample",
    "test-faults-deep": "an hour; `.ci/run` plays a sample",
    "test-fuzz": "`make test` plays a sample",
    "verify": "`make test-long` plays the same walkthroughs and counts the same checks",
}
"""Targets of `make` that a page names and `.ci/run` does not run, and why."""


_ON_FILES: Final = re.compile(
    r"taskgov (?:--help|--version|validate|advise|lease|conformance|kueue-config|replay|"
    r"[\w-]+ (?:.* )?(?:-s|--snapshot)) "
)


def why_not(command: str) -> str | None:
    """Return why a command is not typed, None for one that is."""
    return next((why for beginning, why in NOT_TYPED.items() if f"{command} ".startswith(f"{beginning} ")), None)


def is_on_files(command: str) -> bool:
    """Say whether a command needs no account: `test_offline.py` types it."""
    return _ON_FILES.match(f"{command.removeprefix('.venv/bin/')} ") is not None


def filled(command: str) -> str:
    """Return a command with the words in capitals filled in."""
    known = "|".join(sorted(WORDS, key=len, reverse=True))
    return re.sub(rf"(?<![\w$])(?:{known})(?![\w=])", lambda found: WORDS[found[0]], command)
