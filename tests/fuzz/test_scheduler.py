"""The scheduling model answers, or refuses an object with the field, its value and the rule, and stays as it was."""

import re
from random import Random

import pytest

from taskgov.scheduling import KueueModel
from tests.fuzz.scheduler import OBJECTS, answers, base, play, samples
from tests.scheduling.builders import a_job, a_queue

SEED = 20261123
OBJECTS_IN_ALL = 50_000
CASES = OBJECTS_IN_ALL // OBJECTS


def a_selecting_queue() -> dict[str, object]:
    return a_queue("q", cpu="1", namespaceSelector={"matchExpressions": [{"key": "k", "operator": "Near"}]})


def test_a_sample_of_objects_is_taken_or_refused() -> None:
    refused = [play(SEED + number) for number in range(60)]
    assert 0 < sum(refused) < 60 * OBJECTS * 3


def test_what_is_valid_is_taken() -> None:
    for seed in range(20):
        model = KueueModel()
        model.load(base())
        model.load(samples(Random(seed)))  # noqa: S311 - cases that can be played again


@pytest.mark.parametrize(
    ("obj", "said"),
    [
        (
            a_job("j", "q", count=-1),
            "Workload 'j': spec.podSets.0.count is -1: Input should be greater than or equal to 0",
        ),
        (
            a_queue("q", cpu="many"),
            "ClusterQueue 'q': spec.resourceGroups.0.flavors.0.resources.0.nominalQuota is 'many': ",
        ),
        (
            {"kind": "LocalQueue", "metadata": {"name": "l"}, "spec": {}},
            "LocalQueue 'l': spec.clusterQueue is missing: it is ",
        ),
        (
            {"kind": "Deployment", "metadata": {"name": "d"}},
            "kind is 'Deployment': Kueue does not schedule by objects of kind ",
        ),
        ({"kind": "Topology", "metadata": {}}, "Topology None: metadata.name is missing: it is required"),
        (
            a_selecting_queue(),
            "ClusterQueue 'q': spec.namespaceSelector.matchExpressions.0.operator is 'Near': Input should",
        ),
        (["Workload"], "['Workload']: no Kubernetes object, whose kind names its type"),
        ({"kind": "Cohort", "metadata": {"name": "c"}, "spec": 4}, "Cohort 'c': spec is 4: Input should be "),
    ],
)
def test_a_refusal_names_the_object_the_field_its_value_and_the_rule(obj: object, said: str) -> None:
    model = KueueModel()
    model.load(base())
    before = answers(model)
    with pytest.raises(ValueError, match=re.escape(said)):
        model.apply(obj)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=re.escape(said)):
        model.load([a_queue("new", cpu="1"), obj])  # type: ignore[list-item]
    assert answers(model) == before


def test_items_that_are_no_list_are_refused() -> None:
    with pytest.raises(ValueError, match="items is 4: a list is needed"):
        KueueModel().load([{"items": 4}])


@pytest.mark.fuzz
@pytest.mark.parametrize("start", range(0, CASES, 500))
def test_objects_are_taken_or_refused(start: int) -> None:
    for number in range(start, start + 500):
        play(SEED + number)
