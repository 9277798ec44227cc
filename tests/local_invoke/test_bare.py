"""A bare account, as the workshops of task governance begin: nodes, no add-on, no quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import urllib3

from taskgov.errors import InvalidRequestError
from taskgov_embedded.eks import TASK_GOVERNANCE_ADDON
from taskgov_embedded.server.account import EKS_NAME, LocalAccount, workers_of
from tests.support.eks_token import token_for

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def account() -> Iterator[LocalAccount]:
    with LocalAccount(bare=workers_of("ml.g5.8xlarge=4"), mode="apply") as opened:
        yield opened


def ask(account: LocalAccount, path: str, endpoint: str = "http://127.0.0.1:4566") -> tuple[int, Any]:
    with urllib3.PoolManager(cert_reqs="CERT_NONE", assert_hostname=False) as pool:
        headers = {"Authorization": f"Bearer {token_for(EKS_NAME, endpoint)}"}
        answer = pool.request("GET", account.kubernetes_url + path, headers=headers, retries=False)
        return answer.status, answer.json()


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
def test_kueue_comes_with_the_add_on_and_queues_with_the_quotas(account: LocalAccount) -> None:
    queues = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    assert ask(account, queues)[0] == 404
    groups = [one["name"] for one in ask(account, "/apis")[1]["groups"]]
    assert "apps" in groups
    assert "kueue.x-k8s.io" not in groups
    account.stack.client("eks").create_addon(clusterName=EKS_NAME, addonName=TASK_GOVERNANCE_ADDON)
    assert ask(account, queues)[1]["items"] == []
    account.stack.client("sagemaker").create_compute_quota(
        Name="Team-A-Quota-Allocation",
        ClusterArn=account.cluster_arn,
        ComputeQuotaTarget={"TeamName": "team-a", "FairShareWeight": 0},
        ComputeQuotaConfig={"ComputeQuotaResources": [{"InstanceType": "ml.g5.8xlarge", "Count": 2}]},
    )
    account.stack.account.turns.sleep(5)  # the time that a quota takes to settle, in which the clock is real
    assert [one["metadata"]["name"] for one in ask(account, queues)[1]["items"]] == ["hyperpod-ns-team-a-clusterqueue"]


@pytest.mark.filterwarnings("ignore::urllib3.exceptions.InsecureRequestWarning")
@pytest.mark.parametrize(
    ("endpoint", "status"),
    [("http://127.0.0.1:4566", 200), ("https://sts.amazonaws.com", 200), ("http://10.1.1.1", 401)],
)
def test_a_token_signed_for_the_account_is_taken(account: LocalAccount, endpoint: str, status: int) -> None:
    assert ask(account, "/api/v1/nodes", endpoint)[0] == status


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("ml.g5.8xlarge", "'' is not a number of instances from 1 to 100"),
        ("ml.g5.8xlarge=0", "'0' is not a number"),
        ("ml.g5.8xlarge=101", "'101' is not a number"),
        ("g5=4", "'g5' is not a known instance type"),
    ],
)
def test_workers_that_cannot_be_read_are_an_error(text: str, because: str) -> None:
    with pytest.raises(InvalidRequestError, match=because):
        workers_of(text)


def test_the_stack_has_the_mode_that_was_asked_for(account: LocalAccount) -> None:
    assert account.stack.outputs["ApplyMode"] == "apply"
