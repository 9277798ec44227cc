"""A forge on the loopback that answers as GitHub and GitLab document it, for one repository with one request."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator

OURS, OTHERS = 7, 8
Query = dict[str, list[str]]


@dataclass
class FakeForge:
    """Its comments, oldest first, and the calls that were made."""

    comments: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, str]] = field(default_factory=list)
    is_merged: bool = False
    knows_user: bool = False
    """Whether the token is a person's on GitHub; that of a pipeline may not ask for its user."""
    failing: dict[str, list[int]] = field(default_factory=dict)
    """Method -> the statuses of its next answers."""
    url: str = ""

    def add(self, body: str, account: int = OURS) -> None:
        """Put a comment there, as a person or an earlier run did."""
        self.comments.append({"id": len(self.comments) + 1, "body": body, "account": account})

    def answer(self, method: str, target: str, body: Any) -> tuple[int, Any]:
        """Return status and JSON."""
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        self.calls.append((method, path))
        if self.failing.get(method):
            return self.failing[method].pop(0), {"message": "try again"}
        parts = path.strip("/").split("/")
        if parts == ["user"]:
            return self._user()
        return self._of_repository(method, parts, query, body) or self._of_project(method, parts, query, body)

    def _user(self) -> tuple[int, Any]:
        is_github = not any("merge_requests" in called for _, called in self.calls)
        allowed = self.knows_user or not is_github
        return (200, {"id": OURS, "login": "ana", "username": "ana"}) if allowed else (403, {"message": "no"})

    def _of_repository(self, method: str, parts: list[str], query: Query, body: Any) -> tuple[int, Any] | None:
        """Answer as GitHub; None for paths that it does not have."""
        match method, parts:
            case "GET", ["repos", _, _, "pulls", "12"]:
                return 200, self._pull()
            case "GET", ["repos", _, _, "commits", _, "pulls"]:
                return 200, [self._pull()] if self.is_merged else []
            case "GET", ["repos", _, _, "issues", "12", "comments"]:
                return 200, self._page([self._of_github(comment) for comment in self.comments], query)
            case "POST", ["repos", _, _, "issues", "12", "comments"]:
                self.add(body["body"])
                return 201, self._of_github(self.comments[-1])
            case "PATCH", ["repos", _, _, "issues", "comments", number]:
                self.comments[int(number) - 1]["body"] = body["body"]
                return 200, self._of_github(self.comments[int(number) - 1])
            case _:
                return None

    def _of_project(self, method: str, parts: list[str], query: Query, body: Any) -> tuple[int, Any]:
        """Answer as GitLab."""
        match method, parts:
            case "GET", ["projects", _, "merge_requests", "12"]:
                return 200, self._merge_request()
            case "GET", ["projects", _, "repository", "commits", _, "merge_requests"]:
                return 200, [self._merge_request()] if self.is_merged else []
            case "GET", ["projects", _, "merge_requests", "12", "notes"]:
                return 200, self._page([self._of_gitlab(comment) for comment in self.comments], query)
            case "POST", ["projects", _, "merge_requests", "12", "notes"]:
                self.add(body["body"])
                return 201, self._of_gitlab(self.comments[-1])
            case "PUT", ["projects", _, "merge_requests", "12", "notes", number]:
                self.comments[int(number) - 1]["body"] = body["body"]
                return 200, self._of_gitlab(self.comments[int(number) - 1])
            case _:
                return 404, {"message": f"{method} {'/'.join(parts)}"}

    def _pull(self) -> dict[str, Any]:
        merged_at = "2026-11-20T12:00:00Z" if self.is_merged else None
        return {"number": 12, "user": {"login": "alice", "id": 3}, "merged_at": merged_at, "state": "open"}

    def _merge_request(self) -> dict[str, Any]:
        state = "merged" if self.is_merged else "opened"
        return {"iid": 12, "author": {"username": "alice", "id": 3}, "state": state}

    def _of_github(self, comment: dict[str, Any]) -> dict[str, Any]:
        ours = "ana" if self.knows_user else "github-actions[bot]"
        login = ours if comment["account"] == OURS else "mallory"
        return {"id": comment["id"], "body": comment["body"], "user": {"login": login, "id": comment["account"]}}

    @staticmethod
    def _of_gitlab(comment: dict[str, Any]) -> dict[str, Any]:
        author = {"id": comment["account"], "username": "ana"}
        return {"id": comment["id"], "body": comment["body"], "author": author, "system": False}

    @staticmethod
    def _page(items: list[dict[str, Any]], query: Query) -> list[dict[str, Any]]:
        size, page = int(query.get("per_page", ["20"])[0]), int(query.get("page", ["1"])[0])
        return items[(page - 1) * size : page * size]


@contextmanager
def served(forge: FakeForge) -> Iterator[FakeForge]:
    """Serve it on the loopback."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            length = int(self.headers.get("content-length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            status, answer = forge.answer(self.command, self.path, body)
            text = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_PATCH = do_PUT = _answer  # noqa: N815 - as the library calls them

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        forge.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield forge
        finally:
            server.shutdown()
            thread.join()
