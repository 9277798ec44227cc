"""A product file that a person reads at one sitting: at most 300 lines."""

from tests.support.imports import LAYER, ROOT, WORKSTATION

MOST = 300
LONGER = {
    "layers/taskgov/python/taskgov/adapters/dynamodb.py",
    "layers/taskgov/python/taskgov/allocation/around_refusals.py",
    "layers/taskgov/python/taskgov/allocation/mass_loss.py",
    "layers/taskgov/python/taskgov/allocation/path.py",
    "layers/taskgov/python/taskgov/allocation/standing.py",
    "layers/taskgov/python/taskgov/ports.py",
    "layers/taskgov/python/taskgov/scheduling/store.py",
    "layers/taskgov/python/taskgov/services/metric_catalogue.py",
    "layers/taskgov/python/taskgov/services/take_order.py",
    "layers/taskgov/python/taskgov/services/verify_plan.py",
    "layers/taskgov/python/taskgov/snapshot/forms.py",
    "layers/taskgov/python/taskgov/snapshot/model.py",
    "workstation/taskgov_embedded/aws_api/aws_requests.py",
    "workstation/taskgov_embedded/cloudformation/resources.py",
    "workstation/taskgov_embedded/cluster/controllers.py",
    "workstation/taskgov_embedded/cluster/simulated.py",
    "workstation/taskgov_embedded/functions/runtime.py",
    "workstation/taskgov_embedded/iam/actions.py",
    "workstation/taskgov_embedded/stack.py",
    "workstation/taskgov_embedded/stepfunctions/interpreter.py",
    "workstation/taskgov_embedded/walkthrough/checks.py",
    "workstation/taskgov_embedded/walkthrough/model.py",
    "workstation/taskgov_embedded/walkthrough/world.py",
}
"""Files that are longer still. The list only shrinks."""


def test_no_product_file_is_longer_than_300_lines() -> None:
    files = [path for folder in (LAYER, WORKSTATION, ROOT / "functions") for path in folder.rglob("*.py")]
    longer = {str(path.relative_to(ROOT)) for path in files if len(path.read_text().splitlines()) > MOST}
    assert sorted(longer - LONGER) == [], "split it by the questions that it answers"
    assert sorted(LONGER - longer) == [], "it is short enough now: take it off the list"
