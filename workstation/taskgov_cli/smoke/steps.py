"""The steps of the smoke test, in their order. `docs/smoke.md` shows the same table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from taskgov_cli.smoke import steps_api, steps_quota, steps_stack
from taskgov_cli.smoke.model import Step

if TYPE_CHECKING:
    from taskgov_cli.smoke.model import Sandbox


def _delete(sandbox: Sandbox) -> str:
    """Undo everything, last first, while the observer still exists."""
    for step in reversed(STEPS):
        if step.clean_up is not None:
            step.clean_up(sandbox)
    sandbox.is_clean = True
    return "everything that this run made is gone"


STEPS: Final[tuple[Step, ...]] = (
    # First, so that it is undone last: a stack that still governed would make the quota again.
    Step(
        "look",
        "no stack governs the cluster, and two instances of a type are in no quota",
        steps_quota.look,
        steps_quota.remove_team,
        "the team's quota and the mark on the cluster",
    ),
    Step("preflight", "nothing keeps the stack from being deployed here", steps_stack.preflight),
    Step(
        "listen",
        "CloudTrail's events of quota calls are copied to a queue of this run",
        steps_stack.listen,
        steps_stack.stop_listening,
        "the rule and the queue",
    ),
    Step(
        "probe",
        "a quota made by hand settles, and wrong writes are refused with the expected errors",
        steps_api.probe,
        steps_api.remove_probe,
        "the quota made by hand",
    ),
    Step(
        "deploy",
        "the stack is there, with its outputs",
        steps_stack.deploy,
        steps_stack.undeploy,
        "the stack, its table and its bucket",
    ),
    Step(
        "connect",
        "the roles that read the cluster have access entries",
        steps_stack.connect,
        steps_stack.disconnect,
        "the access entries",
    ),
    Step("doctor", "no check fails except those that a stack without a document cannot pass", steps_stack.doctor),
    Step("create", "a document gives a new team one instance, and the run applies it", steps_quota.create),
    Step("update", "another document gives the team another weight", steps_quota.update),
    Step("approval", "a change that needs a person waits, and is applied once it is approved", steps_quota.approval),
    Step("canary", "a new version gets a tenth of the calls for five minutes, and then all", steps_stack.canary),
    Step("roll-back", "the approved plan is rolled back: the quota is as before", steps_quota.roll_back),
    Step(
        "node-event", "the event of an unhealthy node, put into the queue by hand, starts a run", steps_api.node_event
    ),
    Step("trail", "CloudTrail's events came, in the expected form", steps_api.trail),
    Step("delete", "nothing is left of what this run made", _delete),
)
