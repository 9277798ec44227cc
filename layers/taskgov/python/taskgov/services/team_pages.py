"""Write the page of each team: called by `audit_cluster`, and by `publish_usage` at the end of a run."""

from dataclasses import dataclass

from taskgov.audit.team_page import team_pages
from taskgov.audit.team_page_html import team_page_html
from taskgov.ports import DocumentStore
from taskgov.services.kept_starts import task_starts
from taskgov.snapshot.model import Snapshot


@dataclass(frozen=True, slots=True)
class TeamPages:
    """Writes the page of each team. Its fields are the ports it uses."""

    documents: DocumentStore

    def write(self, snapshot: Snapshot) -> None:
        """Write the page of each team of a snapshot. Raises ThrottledError, UpstreamError."""
        for page in team_pages(snapshot, task_starts(self.documents, snapshot)):
            self.documents.put(page.key, team_page_html(page), "text/html; charset=utf-8")
