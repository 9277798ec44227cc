"""Write the page of each team: called by `audit_cluster`, and by `publish_usage` at the end of a run."""

from dataclasses import dataclass
from typing import Final

from taskgov.audit.report_tasks import Starts
from taskgov.audit.team_page import team_pages
from taskgov.audit.team_page_html import team_page_html
from taskgov.ports import DocumentStore
from taskgov.services.failures import Failures
from taskgov.services.kept_starts import task_starts
from taskgov.snapshot.model import Snapshot
from taskgov.usage.cluster_usage import ClusterUsage, cluster_usage

MOST_FAILED: Final = 3
"""After so many pages in a row that cannot be written, the others stay as old as they are: the bucket may be down."""


@dataclass(frozen=True, slots=True)
class TeamPages:
    """Writes the page of each team. Its fields are the ports it uses."""

    documents: DocumentStore
    failures: Failures

    def write(self, snapshot: Snapshot, usage: ClusterUsage | None = None, starts: Starts | None = None) -> None:
        """Write the page of each team of a snapshot. What fails is reported, and ends neither a run nor an audit.

        `usage` (with loans) and `starts` are those of the snapshot, where they are known already.
        """
        try:
            known = cluster_usage(snapshot) if usage is None else usage
            self._write(snapshot, known, task_starts(self.documents, snapshot) if starts is None else starts)
        except Exception as error:  # noqa: BLE001 - pages are as old as before; the error is reported
            self.failures.report(snapshot.cluster.name, "write the pages of the teams", error)

    def _write(self, snapshot: Snapshot, usage: ClusterUsage, starts: Starts) -> None:
        failed = 0
        for page in team_pages(snapshot, usage, starts):
            try:
                self.documents.put(page.key, team_page_html(page), "text/html; charset=utf-8")
                failed = 0
            except Exception as error:  # noqa: BLE001 - the pages of other teams are written; it is reported
                self.failures.report(snapshot.cluster.name, f"write the page of {page.team}", error)
                failed += 1
                if failed == MOST_FAILED:
                    return
