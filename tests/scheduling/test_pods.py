"""What pods are taken to ask for, after `resources_test.go` and `workload_test.go` in `pkg/workload` of Kueue."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from taskgov.quantities import UNLIMITED
from taskgov.scheduling import KueueModel, ManagerConfig
from taskgov.scheduling.config import ResourceTransformation
from taskgov.scheduling.pods import PodRules
from tests.scheduling.builders import NOW, Object, a_door, a_flavor, a_job, a_queue, a_world, conditions, names

if TYPE_CHECKING:
    from collections.abc import Mapping

GIB = 2**30
LATER = "2026-11-20T09:00:01Z"


def a_limit_range(kind: str = "Container", name: str = "limits", **item: Mapping[str, str]) -> Object:
    return {
        "kind": "LimitRange",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"limits": [{"type": kind, **item}]},
    }


def a_runtime_class(name: str = "sandboxed", **overhead: str) -> Object:
    return {"kind": "RuntimeClass", "metadata": {"name": name}, "handler": "runsc", "overhead": {"podFixed": overhead}}


def a_pod_job(name: str, pod: Object, **job: Any) -> Object:
    workload = a_job(name, "q", **job)
    workload["spec"]["podSets"][0]["template"]["spec"] = pod
    return workload


def containers(*resources: Object) -> Object:
    return {"containers": [{"resources": part} for part in resources]}


def asked(world: KueueModel, name: str = "job") -> Mapping[str, int]:
    """Give what a workload that fits gets."""
    [admitted] = world.cycle(NOW).admitted
    assert admitted.workload == f"default/{name}"
    return admitted.admission.pod_sets[0].usage


TWO = a_queue("q", flavors={"gpu": {"cpu": "100", "memory": "100Gi"}})


class TestOverhead:
    """`handlePodOverhead`, and "Handle runtimeClass with podOverHead" of `TestAdjustResources`."""

    def test_the_overhead_of_the_runtime_class_comes_on_top(self) -> None:
        pod = containers({"requests": {"cpu": "1"}}) | {"runtimeClassName": "sandboxed"}
        assert asked(a_world(TWO, a_runtime_class(cpu="250m", memory="1Gi"), a_pod_job("job", pod))) == {
            "cpu": 1250,
            "memory": GIB,
        }

    def test_an_overhead_in_the_pod_wins_and_an_unknown_class_adds_nothing(self) -> None:
        own = containers({"requests": {"cpu": "1"}}) | {"runtimeClassName": "sandboxed", "overhead": {"cpu": "2"}}
        unknown = containers({"requests": {"cpu": "1"}}) | {"runtimeClassName": "other"}
        assert asked(a_world(TWO, a_runtime_class(cpu="250m"), a_pod_job("job", own))) == {"cpu": 3000}
        assert asked(a_world(TWO, a_runtime_class(cpu="250m"), a_pod_job("job", unknown))) == {"cpu": 1000}

    def test_a_class_that_changes_counts_for_those_that_wait(self) -> None:
        pod = containers({"requests": {"cpu": "100"}}) | {"runtimeClassName": "sandboxed"}
        world = a_world(TWO, a_runtime_class(cpu="1"), a_pod_job("job", pod))
        assert names(world.cycle(NOW)) == ([], [], ["job"])
        world.delete("RuntimeClass", "sandboxed")
        assert world.pending("q") == (["default/job"], [])
        assert names(world.cycle(NOW))[0] == ["job"]


class TestDefaults:
    """`handlePodLimitRange` and `handleLimitsToRequests`, the cases of `TestAdjustResources`."""

    def test_defaults_fill_what_containers_leave_open(self) -> None:
        limits = a_limit_range(default={"cpu": "4", "memory": "2Gi"}, defaultRequest={"cpu": "2"})
        pod = containers({}, {"requests": {"cpu": "1"}}, {"limits": {"cpu": "3"}}) | {
            "initContainers": [{"resources": {"requests": {"cpu": "8"}, "limits": {"cpu": "8"}}}]
        }
        # cpu: 2 (default request), 1, 2 (a default request comes before the limit); memory: the default limit, 3 times
        assert asked(a_world(TWO, limits, a_pod_job("job", pod))) == {"cpu": 8000, "memory": 6 * GIB}

    def test_the_first_default_counts(self) -> None:
        first = a_limit_range(name="a", defaultRequest={"cpu": "2"})
        second = a_limit_range(name="b", defaultRequest={"cpu": "5", "memory": "1Gi"})
        assert asked(a_world(TWO, second, first, a_pod_job("job", containers({})))) == {"cpu": 2000, "memory": GIB}

    def test_defaults_of_pods_are_for_pods_that_have_resources_of_their_own(self) -> None:
        limits = a_limit_range("Pod", default={"cpu": "6"}, defaultRequest={"cpu": "5"})
        own = containers({"requests": {"cpu": "1"}}) | {"resources": {"requests": {"memory": "1Gi"}}}
        assert asked(a_world(TWO, limits, a_pod_job("job", own))) == {"cpu": 5000, "memory": GIB}
        assert asked(a_world(TWO, limits, a_pod_job("job", containers({"requests": {"cpu": "1"}})))) == {"cpu": 1000}

    def test_limits_of_another_namespace_do_not_count(self) -> None:
        limits = a_limit_range(defaultRequest={"cpu": "2"})
        limits["metadata"]["namespace"] = "other"
        assert asked(a_world(TWO, limits, a_pod_job("job", containers({"requests": {"cpu": "1"}})))) == {"cpu": 1000}

    def test_a_limit_range_that_comes_later_counts_for_those_that_wait(self) -> None:
        world = a_world(TWO, a_pod_job("job", containers({})))
        world.apply(a_limit_range(defaultRequest={"cpu": "2"}))
        assert asked(world.copy()) == {"cpu": 2000}
        world.delete("LimitRange", "limits", "default")
        assert asked(world) == {}


POD = "spec.podSets[0].template.spec"
ABOVE_LIMITS = "requests must not exceed its limits"
ABOVE_MAX = "requests must not be above the limitRange max"
OUT_OF_BOUNDS = "resources didn't satisfy LimitRange constraints"
BELOW_MIN = "requests must not be below the limitRange min"


def invalid(path: str, rule: str, *resources: str) -> str:
    return f"{POD}{path}: Invalid value: {json.dumps(resources, separators=(',', ':'))}: {rule}"


REFUSED: dict[str, tuple[Object, list[Object], str]] = {
    "requests above limits": (
        containers({"requests": {"cpu": "3", "memory": "2Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}),
        [],
        invalid(".containers[0]", ABOVE_LIMITS, "cpu", "memory"),
    ),
    "requests above limits in two places": (
        {
            "initContainers": [{"resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}}],
            "containers": [{"resources": {}}],
            "resources": {"requests": {"cpu": "300m"}, "limits": {"cpu": "200m"}},
        },
        [],
        f"[{invalid('.initContainers[0]', ABOVE_LIMITS, 'cpu')}, {invalid('.resources', ABOVE_LIMITS, 'cpu')}]",
    ),
    "a default limit below what is requested": (
        containers({"requests": {"cpu": "3"}}),
        [a_limit_range(default={"cpu": "2"})],
        invalid(".containers[0]", ABOVE_LIMITS, "cpu"),
    ),
    "a container above the maximum": (
        containers({"requests": {"cpu": "2"}, "limits": {"cpu": "3"}}),
        [a_limit_range(max={"cpu": "5"}, name="a"), a_limit_range(max={"cpu": "1"}, name="b")],
        invalid(".containers[0]", ABOVE_MAX, "cpu"),
    ),
    "a container below the minimum": (
        containers({"requests": {"cpu": "0"}}),
        [a_limit_range(min={"cpu": "1"})],
        invalid(".containers[0]", BELOW_MIN, "cpu"),
    ),
    "a pod above the maximum, with its sidecar": (
        containers({"requests": {"cpu": "300m"}})
        | {"initContainers": [{"restartPolicy": "Always", "resources": {"requests": {"cpu": "300m"}}}]},
        [a_limit_range("Pod", max={"cpu": "500m"})],
        invalid("", ABOVE_MAX, "cpu"),
    ),
    "a pod below the minimum": (
        containers({"requests": {"cpu": "2"}}),
        [a_limit_range("Pod", min={"cpu": "3", "memory": "1Gi"})],
        invalid("", BELOW_MIN, "cpu"),
    ),
}
ALLOWED: dict[str, tuple[Object, list[Object]]] = {
    "a resource that the limits do not name": (
        containers({"requests": {"cpu": "3", "memory": "1Gi"}, "limits": {"cpu": "3"}}),
        [a_limit_range(max={"example.com/gpu": "1"}, min={"example.com/gpu": "1"})],
    ),
    "a pod within its bounds": (containers({"requests": {"cpu": "5"}}), [a_limit_range("Pod", max={"cpu": "5"})]),
    "a type that has nothing to do with pods": (
        containers({"requests": {"cpu": "5"}}),
        [a_limit_range("PersistentVolumeClaim", max={"cpu": "1"})],
    ),
}


class TestRefusals:
    """`ValidateResources`, `ValidateLimitRange` and `ValidatePodSpec`, after their tests and `scheduler_test.go`."""

    @pytest.mark.parametrize("name", REFUSED)
    def test_a_workload_beyond_its_limits_is_refused_whatever_quota_there_is(self, name: str) -> None:
        pod, objects, message = REFUSED[name]
        world = a_world(TWO, *objects, a_pod_job("job", pod), a_job("next", "q", second=1))
        if not objects:
            assert names(world.cycle(NOW)) == ([], [], ["job"])
            assert names(world.cycle(NOW))[0] == ["next"]
        else:
            world.cycle(NOW)
        condition = conditions(world, "job")["QuotaReserved"]
        kind = "resources validation failed" if ABOVE_LIMITS in message else OUT_OF_BOUNDS
        assert (condition["status"], condition["reason"]) == ("False", "Pending")
        assert condition["message"] == f"{kind}: {message}"
        assert "default/job" in world.pending("q")[1]

    @pytest.mark.parametrize("name", ALLOWED)
    def test_a_workload_within_them_is_admitted(self, name: str) -> None:
        pod, objects = ALLOWED[name]
        assert names(a_world(TWO, *objects, a_pod_job("job", pod)).cycle(NOW))[0] == ["job"]

    def test_the_reason_is_misconfigured_where_reasons_are_granular(self) -> None:
        job = a_pod_job("job", REFUSED["requests above limits"][0])
        world = a_world(TWO, job, gates={"UnadmittedWorkloadsObservability": True})
        assert world.cycle(NOW).waiting[0].reason == "Misconfigured"

    def test_it_holds_up_a_strict_queue(self) -> None:
        """A generic requeue is immediate there (`RequeueIfNotPresent` in `pkg/cache/queue/cluster_queue.go`)."""
        job = a_pod_job("job", REFUSED["requests above limits"][0])
        world = a_world(TWO | {"spec": {**TWO["spec"], "queueingStrategy": "StrictFIFO"}}, job, a_job("next", "q"))
        world.cycle(NOW)
        assert names(world.cycle(NOW)) == ([], [], ["job"])

    def test_a_bound_that_is_lifted_does_not_wake_it_but_the_next_look_admits_it(self) -> None:
        """The spec is what it was: `PushOrUpdate` in `pkg/cache/queue/cluster_queue.go` updates it in place."""
        world = a_world(TWO, a_limit_range(max={"cpu": "1"}), a_job("job", "q", cpu="2"))
        world.cycle(NOW)
        world.apply(a_limit_range(max={"cpu": "2"}))
        assert world.pending("q") == ([], ["default/job"])
        world.requeue_inadmissible(world.trees)
        assert names(world.cycle(LATER))[0] == ["job"]

    def test_a_spec_that_is_fixed_wakes_it(self) -> None:
        low = {"requests": {"cpu": "3"}, "limits": {"cpu": "2"}}
        world = a_world(TWO, a_pod_job("job", containers(low)))
        world.cycle(NOW)
        world.apply(a_pod_job("job", containers(low | {"limits": {"cpu": "3"}})))
        assert world.pending("q") == (["default/job"], [])

    def test_a_limit_range_that_cannot_be_read_is_refused(self) -> None:
        with pytest.raises(ValueError, match="quantity"):
            KueueModel().apply(a_limit_range(max={"cpu": "many"}))


def a_rule(name: str, strategy: str = "Retain", multiply_by: str = "", **outputs: str) -> ResourceTransformation:
    named = {f"example.com/{output}": factor for output, factor in outputs.items()}
    return ResourceTransformation(f"example.com/{name}", named, strategy, multiply_by)


COUNTED: dict[str, tuple[list[ResourceTransformation], dict[str, int], dict[str, int]]] = {
    "transformResources": (
        [a_rule("a", "Replace", credit="5"), a_rule("b", credit="2", other="3")],
        {"example.com/a": 2, "example.com/b": 3, "cpu": 1000},
        {"cpu": 1000, "example.com/b": 3, "example.com/credit": 16, "example.com/other": 9},
    ),
    "an input that is replaced by nothing": ([a_rule("a", "Replace")], {"example.com/a": 2, "cpu": 5}, {"cpu": 5}),
    "transformAllowanceAboveIt": (
        [a_rule("a", "Replace", credit="1"), a_rule("b", "Replace", credit="-2")],
        {"example.com/a": 5, "example.com/b": 2},
        {"example.com/credit": 1},
    ),
    "transformAllowanceUnderIt": (
        [a_rule("a", "Replace", credit="1"), a_rule("b", "Replace", credit="-2")],
        {"example.com/a": 3, "example.com/b": 2},
        {"example.com/credit": 0},
    ),
    "transformAllowanceDoesNotReachADirectRequest": (
        [a_rule("b", "Replace", credit="-2")],
        {"example.com/b": 2, "example.com/credit": 3},
        {"example.com/credit": 3},
    ),
    "transformOutputSharingANameWithItsRetainedInputIsAdded": (
        [a_rule("a", a="2")],
        {"example.com/a": 3},
        {"example.com/a": 9},
    ),
    "transformRetainWithMultiplyBy": (
        [a_rule("a", multiply_by="cpu", credit="10")],
        {"example.com/a": 3, "cpu": 1500},
        {"example.com/a": 3, "cpu": 1500, "example.com/credit": 45},
    ),
    "multiplied by what is not requested": (
        [a_rule("a", "Replace", multiply_by="cpu", credit="10")],
        {"example.com/a": 3},
        {"example.com/credit": 30},
    ),
    "transformProductPastTheRangeIsNotFlooredAway": (
        [a_rule("a", "Replace", credit="10000000000")],
        {"example.com/a": 10_000_000_000},
        {"example.com/credit": UNLIMITED},
    ),
    "transformMilliValues": (
        [
            ResourceTransformation("cpu", {"example.com/cpu-credits": "3000"}, "Replace"),
            ResourceTransformation("memory", {"example.com/memory-credits": "3m"}, "Replace"),
        ],
        {"cpu": 100, "memory": 100_000_000},
        {"example.com/cpu-credits": 300, "example.com/memory-credits": 300_000},
    ),
}


class TestCounting:
    """`dropExcludedResources` and `applyResourceTransformations`, named as the cases of `TestNewInfo`."""

    @pytest.mark.parametrize("name", COUNTED)
    def test_what_counts(self, name: str) -> None:
        rules, requests, counted = COUNTED[name]
        assert PodRules(ManagerConfig(resource_transformations=tuple(rules))).counted(requests) == counted

    def test_resources_with_an_excluded_prefix_do_not_count_and_are_not_transformed(self) -> None:
        config = ManagerConfig(
            resources_exclude_prefixes=("networking.", "example.com/"),
            resource_transformations=(a_rule("a", credit="1"),),
        )
        requests = {"networking.k8s.io/vpc": 1, "example.com/a": 2, "cpu": 1000}
        assert PodRules(config).counted(requests) == {"cpu": 1000}

    def test_quota_is_taken_of_what_counts(self) -> None:
        config = ManagerConfig(
            resources_exclude_prefixes=("vpc.amazonaws.com/",),
            resource_transformations=(
                ResourceTransformation("nvidia.com/mig-1g.5gb", {"example.com/gpu-memory": "5Gi"}, "Replace"),
            ),
        )
        requests = {"nvidia.com/mig-1g.5gb": "2", "vpc.amazonaws.com/efa": "4"}
        queue = a_queue("q", flavors={"gpu": {"example.com/gpu-memory": "40Gi"}})
        job = a_job("job", "q", count=3, requests=requests)
        world = KueueModel(config)
        world.load([a_flavor(), a_door("q"), queue, job])
        assert asked(world.copy()) == {"example.com/gpu-memory": 30 * GIB}
        without = world.restarted(ManagerConfig())
        assert names(without.cycle(NOW)) == ([], [], ["job"])

    def test_workloads_that_request_otherwise_are_not_equals_though_the_same_counts(self) -> None:
        """The hash is made of the pods as they are written (`SpecShape`), next to what counts."""
        world = KueueModel(ManagerConfig(resources_exclude_prefixes=("vpc.",)))
        other = a_job("other", "q", requests={"cpu": "8", "vpc.amazonaws.com/efa": "1"}, second=2)
        queue = a_queue("q", flavors={"gpu": {"cpu": "4"}})
        world.load([a_flavor(), a_door("q"), queue, a_job("job", "q", cpu="8"), other])
        world.cycle(NOW)
        assert world.pending("q") == (["default/other"], ["default/job"])

    def test_a_factor_that_is_no_quantity_is_refused_when_the_model_is_made(self) -> None:
        with pytest.raises(ValueError, match="quantity"):
            KueueModel(ManagerConfig(resource_transformations=(a_rule("a", credit="many"),)))
