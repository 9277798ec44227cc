"""What Kueue leaves to chance, and how the differential test takes it: each race on the real Kueue."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from taskgov.kueue.render import manager_configuration
from tests.cluster.differential.builders import a_queue, a_sequence, submit
from tests.cluster.differential.company import Company
from tests.cluster.differential.sequence import Finish
from tests.cluster.kube import conditions
from tests.cluster.workbench import a_policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cluster.conftest import Cluster
    from tests.cluster.differential.play import Player
    from tests.cluster.differential.sequence import Sequence

pytestmark = pytest.mark.cluster


@pytest.fixture
def company(cluster: Cluster) -> Iterator[Company]:
    cluster.run_kueue(manager_configuration(a_policy("Enabled")).to_manifest())
    with Company(cluster.kube.kubeconfig, cluster.kueue_log) as company:
        yield company


MOST_TRIES = 20
NEVER_FITS = submit("a", "never-fits", 1, 9)
"""Its first pod set fits in either flavor, its second in none: a search stops early, and goes on in the next cycle."""


def test_a_status_has_the_words_of_one_of_the_looks_that_followed_one_another(company: Company) -> None:
    """Two looks say two things; the second is not written when a copy from before the first says it already."""
    steps = [step for place in range(4) for step in (submit("a", f"small-{place}", 1), Finish(0))]
    played = company.play([a_sequence(NEVER_FITS, *steps, a=a_queue(2, 2))] * 8)
    assert [one.differences for one in played] == [[]] * 8
    looks = [{waiting.message for cycle in cycles for waiting in cycle.waiting} for _, cycles in played[0].steps]
    assert max(map(len, looks)) == 2


def test_the_head_of_a_strict_queue_goes_round_among_its_flavors(company: Company) -> None:
    """Nobody can say which words its status has just now; both sides say the same two."""
    sequence = a_sequence(NEVER_FITS, a=a_queue(2, 2, queueingStrategy="StrictFIFO"))
    seen, said = _words_over_a_second(company, sequence)
    assert seen == said
    assert len(said) == 2
    assert [one.differences for one in company.play([sequence] * 8)] == [[]] * 8


def test_of_equals_in_two_queues_either_is_first(cluster: Cluster, company: Company) -> None:
    """Share, priority and second of creation are the same: Kueue goes through a Go map, whose order is random."""
    if cluster.kueue_log is None:
        pytest.skip("without Kueue's log no two steps follow one another within a second")
    never = {"withinClusterQueue": "Never", "reclaimWithinCohort": "Never"}
    empty, full = a_queue(0, preemption=never), a_queue(1, preemption=never)
    steps = (submit("c", "runs", 1), submit("a", "one", 1), submit("b", "two", 1), Finish(0))
    first = set[str]()

    def look(player: Player) -> None:
        one, two = (player.real.workload(key) or {} for key in player.keys)
        if one["metadata"]["creationTimestamp"] == two["metadata"]["creationTimestamp"]:
            first.update(name for name, each in (("one", one), ("two", two)) if "admission" in each["status"])

    for _ in range(MOST_TRIES):
        assert company.play_one(a_sequence(*steps, a=empty, b=empty, c=full), at_the_end=look).differences == []
        if first == {"one", "two"}:
            return
    raise AssertionError(f"always the same was first: {first}")


def _words_over_a_second(company: Company, sequence: Sequence) -> tuple[set[str], set[str]]:
    """Return what Kueue writes of the workload over a second, and what the model says of it."""
    seen: set[str] = set()

    def look(player: Player) -> None:
        end = time.monotonic() + 1
        [key] = player.keys
        while time.monotonic() < end:
            seen.add(conditions(player.real.workload(key) or {})["QuotaReserved"]["message"])
            time.sleep(0.002)
        said.update(player.model.said(key))

    said: set[str] = set()
    assert company.play_one(sequence, at_the_end=look).differences == []
    return seen, said
