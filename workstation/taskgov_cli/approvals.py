"""`taskgov approve` and `taskgov reject`: a person answers the run that waits for approval.

The answer is an order to the stack's signed entry: AWS attests who gave it, and the function behind the entry keeps
that with the request and sends it to the run. The task token of the waiting run never leaves the stack.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from taskgov.contracts.orders import AnswerOrder
from taskgov.errors import NotFoundError
from taskgov_cli.deployed import OfCluster, PlanId, RefusedError, StackName, deployed, told
from taskgov_cli.orders import give
from taskgov_cli.output import AsJson, console, print_json
from taskgov_cli.stack_outputs import DEFAULT_STACK

if TYPE_CHECKING:
    from taskgov_cli.deployed import Deployed


def approve(
    plan_id: PlanId, stack: StackName = DEFAULT_STACK, cluster: OfCluster = None, *, as_json: AsJson = False
) -> None:
    """Approve a waiting plan: exactly its changes are applied, or none if the cluster has changed since.

    Example: taskgov approve plan-0123456789abcdef --stack taskgov
    """
    _answer(plan_id, stack, cluster, approved=True, as_json=as_json)


def reject(
    plan_id: PlanId, stack: StackName = DEFAULT_STACK, cluster: OfCluster = None, *, as_json: AsJson = False
) -> None:
    """Reject a waiting plan: nothing is applied, and the same changes are not proposed again for some time.

    Example: taskgov reject plan-0123456789abcdef
    """
    _answer(plan_id, stack, cluster, approved=False, as_json=as_json)


def _answer(plan_id: str, stack: str, cluster: str | None, *, approved: bool, as_json: bool) -> None:
    with told():
        answer = _ordered(deployed(stack), plan_id, cluster, "approve" if approved else "reject")
    if as_json:
        print_json({name: answer[name] for name in ("planId", "clusterArn", "approved", "by", "at")})
        return
    console().print(f"{answer['summary']}\n", markup=False)
    told_what = "Approved" if approved else "Rejected"
    next_words = f"For the outcome: taskgov history {answer['clusterName']}"
    console().print(f"{told_what} as {answer['by']}. {next_words}", markup=False)


def _ordered(place: Deployed, plan_id: str, cluster: str | None, action: str) -> dict[str, Any]:
    for arn in place.arns(cluster):
        order = AnswerOrder.parse({"action": action, "clusterArn": arn, "planId": plan_id})
        try:
            return give(place, order)
        except NotFoundError:
            continue
    raise RefusedError(
        f"no plan {plan_id} waits for approval: it has expired, or the id is wrong; the plan that waits, and the "
        f"outcomes of others: taskgov history {cluster or 'CLUSTER'}"
    )
