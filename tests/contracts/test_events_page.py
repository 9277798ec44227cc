"""`docs/events.md` names every kind of event that is read, and every sample."""

from pathlib import Path

from taskgov.contracts import events
from taskgov.hyperpod import inferred

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "events.md").read_text()


def test_every_kind_of_event_is_on_the_page() -> None:
    kinds = {detail_type.removesuffix(" Unsuccessful") for _, detail_type in events._READERS}
    calls = inferred.QUOTA_CALLS | inferred.POLICY_CALLS | events.CLUSTER_CALLS

    assert {one for one in kinds | calls if one not in PAGE} == set()


def test_every_sample_is_on_the_page() -> None:
    names = {path.name.removesuffix(".json") for path in (ROOT / "events").glob("*.json")} - {"env"}
    shortened = {"hyperpod_cluster_event.no_capacity": "`.no_capacity`"}
    batches = {name for name in names if name.startswith("cloudtrail_batch_")}

    assert {one for one in names - batches if shortened.get(one, f"`{one}`") not in PAGE} == set()
    assert batches
    assert "`cloudtrail_batch_*_cluster_nodes`" in PAGE
