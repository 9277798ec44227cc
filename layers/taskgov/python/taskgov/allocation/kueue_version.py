"""Report a cluster whose Kueue has another minor version than the one that predictions model."""

from collections.abc import Iterable

from taskgov.findings import Finding
from taskgov.findings.of_state import KUEUE_VERSION, KUEUE_VERSION_UNKNOWN
from taskgov.scheduling.kueue_version import FOLLOWED, is_followed, said_differences
from taskgov.snapshot.kueue_manager import kueue_release, unknown_because
from taskgov.snapshot.model import Snapshot


def version_findings(snapshot: Snapshot) -> Iterable[Finding]:
    """Report a Kueue of another minor version, and one whose version could not be read."""
    release, followed = kueue_release(snapshot.kueue), str(FOLLOWED)
    name, because = snapshot.cluster.name, unknown_because(snapshot.kueue)
    if release is not None and not is_followed(release):
        evidence = {"version": str(release), "followed": followed}
        differences = said_differences(release)
        yield KUEUE_VERSION.about(name, evidence, version=release, followed=followed, differences=differences)
    elif because:
        yield KUEUE_VERSION_UNKNOWN.about(name, {"followed": followed}, because=because, followed=followed)
