"""Selectors, taints and affinity."""

from __future__ import annotations

import pytest

from taskgov.scheduling.matching import fits_affinity, meets, selects, tolerates, untolerated_taint
from taskgov.scheduling.objects import PodSet, Requirement, ResourceFlavor, Selector, Taint, Toleration

LABELS = {"team": "nlp", "rank": "7"}
SPOT = Taint("instance", "spot", "NoSchedule")


@pytest.mark.parametrize(
    ("requirement", "answer"),
    [
        (Requirement("team", "In", ("nlp", "cv")), True),
        (Requirement("team", "NotIn", ("nlp",)), False),
        (Requirement("other", "NotIn", ("x",)), True),
        (Requirement("team", "Exists"), True),
        (Requirement("other", "DoesNotExist"), True),
        (Requirement("rank", "Gt", ("5",)), True),
        (Requirement("rank", "Lt", ("7",)), False),
        (Requirement("other", "Gt", ("1",)), False),
        (Requirement("team", "Gt", ("1",)), False),
        (Requirement("team", "Lt", ("1",)), False),
    ],
)
def test_each_operator_reads_labels_as_kubernetes_does(requirement: Requirement, answer: bool) -> None:
    assert meets(requirement, LABELS) is answer


def test_an_unknown_operator_is_an_error_not_a_mismatch() -> None:
    with pytest.raises(ValueError, match="Like"):
        meets(Requirement("team", "Like", ("n*",)), LABELS)


def test_no_selector_selects_nothing_and_an_empty_one_everything() -> None:
    assert not selects(None, LABELS)
    assert selects(Selector(), {})
    assert not selects(Selector((Requirement("team", "In", ("cv",)),)), LABELS)


@pytest.mark.parametrize(
    ("toleration", "answer"),
    [
        (Toleration("instance", "Equal", "spot", "NoSchedule"), True),
        (Toleration("instance", "Equal", "spot", ""), True),
        (Toleration("instance", "Equal", "spot", "NoExecute"), False),
        (Toleration("instance", "Equal", "other"), False),
        (Toleration("instance", "Exists"), True),
        (Toleration("", "Exists"), True),
        (Toleration("else", "Exists"), False),
    ],
)
def test_a_toleration_covers_a_taint_by_key_value_and_effect(toleration: Toleration, answer: bool) -> None:
    assert tolerates(toleration, SPOT) is answer


def test_a_flavor_tolerates_for_its_pods_and_soft_taints_do_not_block() -> None:
    assert untolerated_taint(ResourceFlavor("f", taints=(SPOT,)), ()) == SPOT
    assert untolerated_taint(ResourceFlavor("f", taints=(SPOT,), tolerations=(Toleration("", "Exists"),)), ()) is None
    assert untolerated_taint(ResourceFlavor("f", taints=(Taint("a", "b", "PreferNoSchedule"),)), ()) is None


@pytest.mark.parametrize(
    ("selector", "affinity", "answer"),
    [
        ((("zone", "a"),), (), True),
        ((("zone", "b"),), (), False),
        ((("unknown", "x"),), (), True),
        ((), ((Requirement("zone", "In", ("b",)),),), False),
        ((), ((Requirement("zone", "In", ("b",)),), (Requirement("zone", "In", ("a",)),)), True),
        ((), ((Requirement("zone", "In", ("b",)),), (Requirement("unknown", "Exists"),)), True),
    ],
    ids=[
        "selector matches",
        "selector differs",
        "labels the flavor does not set do not count",
        "term differs",
        "terms are alternatives",
        "a term about other labels accepts all",
    ],
)
def test_affinity_is_read_on_the_labels_of_the_flavor_alone(
    selector: tuple[tuple[str, str], ...],
    affinity: tuple[tuple[Requirement, ...], ...],
    answer: bool,
) -> None:
    pod_set = PodSet("main", 1, (), node_selector=selector, affinity=affinity)
    assert fits_affinity(ResourceFlavor("f", {"zone": "a"}), pod_set) is answer
