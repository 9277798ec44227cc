"""The `kueue` backend over HTTP, on the embedded cluster; `tests/cluster` runs the same on a real one."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from kubernetes import client

from taskgov.adapters.kubernetes.objects import ObjectApi
from taskgov.backends.plain_eks.objects import TRIES, delete_judged
from taskgov.backends.plain_eks.quotas import KueueQuotas, _Cluster
from taskgov.errors import ConflictError, UpstreamError
from taskgov.hyperpod.instance_types import InstanceTypeTable
from taskgov.hyperpod.model import ActivationState, ComputeQuota, ComputeQuotaConfig, SchedulerConfig
from taskgov.kueue.ownership import MADE
from taskgov.kueue.policy_record import POLICY, PolicyRecord
from taskgov.kueue.record import RECORD, Reading, Record
from taskgov.snapshot.unreadable import UnreadableObject, UnreadableObjectError
from taskgov_embedded.cluster.api_server import ClusterApiServer
from taskgov_embedded.cluster.simulated import SimulatedCluster
from tests.support.quota_store import ARN, G5, POLICY_ID, Edit, QuotaStoreContract, Rig, ranks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from taskgov.ports import ClusterAccess


class OverHttp:
    """Connections to one server, for all callers."""

    def __init__(self, url: str) -> None:
        self._url = url

    def open(self, cluster: ClusterAccess) -> client.ApiClient:
        return client.ApiClient(client.Configuration(host=self._url))


class TestEmbedded(QuotaStoreContract):
    """The contract on the simulated cluster."""

    @pytest.fixture
    def rig(self) -> Iterator[Rig]:
        cluster = SimulatedCluster("ml", lambda: datetime(2026, 11, 20, 9, tzinfo=UTC))
        with ClusterApiServer(cluster.store, writes=cluster) as server:
            quotas = KueueQuotas(OverHttp(server.url), lambda _arn: InstanceTypeTable())

            def edit(change: Edit) -> None:
                cluster.update_object(change(cluster.store.get("clusterqueues", Rig.queue)), "somebody")

            def put(*objects: dict[str, object]) -> None:
                for one in objects:
                    cluster.apply_object(dict(one), "somebody", force=True)

            yield Rig(
                quotas,
                edit=edit,
                put=put,
                find=lambda kind, name, namespace="": cluster.store.find(kind, name, namespace),
                delete=cluster.delete_object,
                submit=cluster.submit,
                settle=cluster.settle,
            )

    @pytest.mark.parametrize("act", ["update", "delete"])
    def test_a_policy_that_was_written_meanwhile_is_not_replaced_by_a_late_write(
        self, rig: Rig, monkeypatch: pytest.MonkeyPatch, act: str
    ) -> None:
        rig.quotas.create_scheduler_config(ARN, "policy", ranks(training=70, tuning=50))
        theirs, send = [ranks(training=90, tuning=50)], ObjectApi._call

        def late(self: ObjectApi, method: str, item: Any, body: Any = None, **query: str) -> Any:
            if theirs and method in {"PATCH", "DELETE"}:
                rig.quotas.update_scheduler_config(POLICY_ID, 1, theirs.pop())
            return send(self, method, item, body, **query)

        monkeypatch.setattr(ObjectApi, "_call", late)
        acts: dict[str, Callable[[], object]] = {
            "update": lambda: rig.quotas.update_scheduler_config(POLICY_ID, 1, ranks(training=10)),
            "delete": lambda: rig.quotas.delete_scheduler_config(POLICY_ID),
        }
        with pytest.raises(ConflictError, match=r"version 2, not 1|changed since it was read"):
            acts[act]()
        found = rig.quotas.scheduler_config(ARN)
        assert found is not None
        assert (found.cluster_scheduler_config_version, found.name) == (2, "policy")


class Listed:
    """The part of `ObjectApi` that lists, over given objects."""

    def __init__(self, **by_kind: list[Any]) -> None:
        self._by_kind = by_kind

    def list(self, _api_version: str, kind: str) -> Iterator[Any]:
        return iter(self._by_kind.get(kind, []))


READING = Reading("arn:aws:eks:us-east-1:111122223333:cluster/ml", InstanceTypeTable(), "v1beta2")


def test_what_an_odd_queue_promises_is_not_known_and_the_error_names_it() -> None:
    odd = {"metadata": {"name": Rig.queue, "generation": 1}, "spec": {"resourceGroups": 7}}
    cluster = _Cluster(cast("Any", Listed(ClusterQueue=[odd])), READING)
    with pytest.raises(UpstreamError, match=rf"ComputeQuota of ClusterQueue {Rig.queue}: spec\."):
        cluster.quotas()
    told: list[UnreadableObject] = []
    assert cluster.quotas(told.append) == ()
    assert [each.kind for each in told] == ["ComputeQuota"]


def test_a_quota_is_found_beside_an_odd_queue_of_another_team_and_may_be_the_odd_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    odd = UnreadableObject("ComputeQuota", "of ClusterQueue another", "spec.resourceGroups: 7 is not a list")
    other = cast("ComputeQuota", SimpleNamespace(compute_quota_id=READING.quota_id("team-a")))

    def quotas(_self: Any, _arn: str, on_unreadable: Any = None) -> tuple[ComputeQuota, ...]:
        on_unreadable(odd)
        return (other,)

    monkeypatch.setattr(KueueQuotas, "quotas", quotas)
    store = KueueQuotas(cast("Any", None), lambda _arn: InstanceTypeTable())
    assert store.quota(READING.quota_id("team-a")) is other
    with pytest.raises(UnreadableObjectError, match="of ClusterQueue another"):
        store.quota(READING.quota_id("team-b"))


def test_an_odd_object_beside_the_queues_is_missing_and_holds_up_nothing() -> None:
    config = ComputeQuotaConfig.model_validate({"ComputeQuotaResources": [{"InstanceType": G5, "Count": 1}]})
    rendered = READING.rendered("team-a", config, 0, ActivationState.ENABLED)
    queue = {**rendered.cluster_queues[0], "metadata": {**rendered.cluster_queues[0]["metadata"], "generation": 1}}
    marks = {MADE: "true", RECORD: Record("quota", config, 0, 1, 1).to_json()}
    queue["metadata"] = {**queue["metadata"], "annotations": marks}
    beside: dict[str, list[Any]] = {
        "Namespace": list(rendered.namespaces),
        "ResourceFlavor": [{"metadata": None}, 7],
        "LocalQueue": [None],
    }
    (quota,) = _Cluster(cast("Any", Listed(ClusterQueue=[queue], **beside)), READING).quotas()
    assert quota.compute_quota_config == config
    assert quota.status != "Created"


def test_an_odd_priority_class_is_missing_from_the_policy_and_holds_up_nothing() -> None:
    asked = SchedulerConfig.model_validate({"PriorityClasses": [{"Name": "high", "Weight": 90}]})
    marks = {POLICY: PolicyRecord("policy", asked, 1).to_json()}

    class WithCohort(Listed):
        def find(self, _cohort: Any) -> dict[str, Any]:
            return {"metadata": {"name": "cohort", "annotations": marks}}

    odd = [{"metadata": {"name": "high-priority"}}, {"metadata": {"name": "other"}, "value": "many"}]
    policy = _Cluster(cast("Any", WithCohort(WorkloadPriorityClass=odd)), READING).policy()
    assert policy is not None
    assert policy.scheduler_config.priority_classes == ()


class Busy:
    """The part of `ObjectApi` that deletes, while Kueue writes the object's status `writes` times in between."""

    def __init__(self, found: dict[str, Any], writes: int) -> None:
        self.found: dict[str, Any] | None = found
        self._writes = writes

    def find(self, _one: Any) -> dict[str, Any] | None:
        return self.found

    def delete(self, read: dict[str, Any]) -> None:
        assert read is self.found
        if self._writes:
            self._writes -= 1
            self.found = {**read}
            raise ConflictError("the ResourceVersion in the precondition does not match")
        self.found = None


MINE = {"kind": "LocalQueue", "metadata": {"name": "q", "annotations": {MADE: "true"}}}


def test_a_deletion_that_met_with_a_status_is_judged_and_made_again() -> None:
    api = Busy(MINE, TRIES - 1)
    delete_judged(cast("Any", api), MINE)
    assert api.found is None
    with pytest.raises(UpstreamError, match="LocalQueue q changes faster than it can be deleted"):
        delete_judged(cast("Any", Busy(MINE, TRIES)), MINE)


def test_what_somebody_took_over_meanwhile_stays() -> None:
    class Taken(Busy):
        def find(self, _one: Any) -> dict[str, Any]:
            return {**MINE, "metadata": {"name": "q"}}

    with pytest.raises(ConflictError, match="was not made by taskgov: it stays"):
        delete_judged(cast("Any", Taken(MINE, 1)), MINE)


def test_a_server_that_lists_no_version_of_kueue_refuses_nothing_for_good() -> None:
    """As an API server for a moment after its restart: `refusal` would end the change, and its quota would stay."""
    cluster = SimulatedCluster("ml", lambda: datetime(2026, 11, 20, 9, tzinfo=UTC))
    with ClusterApiServer(cluster.store, writes=cluster, versions_served=("v1",)) as server:
        quotas = KueueQuotas(OverHttp(server.url), lambda _arn: InstanceTypeTable())
        with pytest.raises(UpstreamError, match=r"serves none of v1beta2, v1beta1.* is Kueue installed\?") as raised:
            quotas.scheduler_config(ARN)
    assert not raised.value.refusal
