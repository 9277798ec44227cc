"""The forge that a pipeline runs on: the comments of the pull or merge request of this run, on GitHub or GitLab.

Everything is taken from the variables that the forges set in their pipelines. A comment counts as ours when the account
of our token wrote it: what others write cannot pose as a review.

Sources: GitHub REST API 2022-11-28, "Issue comments" and "List pull requests associated with a commit"; GitLab REST API
v4, "Notes" and "List merge requests associated with a commit".
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime  # noqa: TC003 -- pydantic reads the annotations
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar
from urllib.parse import quote

import typer
import urllib3
from pydantic import BaseModel, TypeAdapter, ValidationError

from taskgov.errors import InvalidRequestError, UpstreamError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

PAGE: Final = 100
MOST_PAGES: Final = 50
RETRIES: Final = urllib3.Retry(
    total=4, backoff_factor=1, status_forcelist=(429, 502, 503, 504), allowed_methods={"GET", "PATCH", "PUT"}
)
"""A comment is created once: whether a call without an answer created it is seen at the next run."""
BOT: Final = "github-actions[bot]"
"""GitHub's author of what GITHUB_TOKEN writes; the token has no right to read its own user."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that taskgov wrote."""

    identity: int
    body: str


@dataclass(frozen=True, slots=True)
class Request:
    """A pull or merge request: its number, who opened it, and what a person calls it."""

    number: int
    author: str
    name: str


class Forge(Protocol):
    """The comments of a forge. Every method raises UpstreamError; `request` raises InvalidRequestError too."""

    def request(self) -> Request:
        """Return the request that this pipeline runs for, or that its commit was merged with."""
        ...

    def comments(self, request: Request) -> Iterator[Comment]:
        """Yield the comments that the account of our token wrote, oldest first."""
        ...

    def create(self, request: Request, body: str) -> None:
        """Write a comment."""
        ...

    def update(self, request: Request, comment: Comment, body: str) -> None:
        """Replace the text of a comment."""
        ...


def forge_of(environment: Mapping[str, str]) -> Forge:
    """Return the forge whose pipeline this is.

    Raises BadParameter outside a pipeline, and for variables that are not set: all of them at once.
    """
    if environment.get("GITHUB_ACTIONS"):
        _require(environment, "GITHUB_API_URL", "GITHUB_REPOSITORY", "GITHUB_TOKEN")
        headers = {"authorization": f"Bearer {environment['GITHUB_TOKEN']}", "accept": "application/vnd.github+json"}
        return GitHub(Api(environment["GITHUB_API_URL"], headers), environment)
    if environment.get("GITLAB_CI"):
        _require(environment, "CI_API_V4_URL", "CI_PROJECT_ID", "TASKGOV_GITLAB_TOKEN")
        headers = {"private-token": environment["TASKGOV_GITLAB_TOKEN"], "accept": "application/json"}
        return GitLab(Api(environment["CI_API_V4_URL"], headers), environment)
    raise typer.BadParameter("this is not a pipeline of GitHub or GitLab: neither GITHUB_ACTIONS nor GITLAB_CI is set")


def _require(environment: Mapping[str, str], *names: str) -> None:
    missing = [name for name in names if not environment.get(name)]
    if missing:
        raise typer.BadParameter(f"{' and '.join(missing)} must be set for this step of the pipeline")


@dataclass(frozen=True, slots=True)
class Api:
    """A REST API that answers in JSON."""

    url: str
    headers: Mapping[str, str]

    def call(self, form: type[_T], method: str, path: str, body: Mapping[str, Any] | None = None) -> _T:
        """Return the answer, which has this form. Raises UpstreamError with what the forge says."""
        headers = {**self.headers, "user-agent": "taskgov"}
        try:
            with urllib3.PoolManager(retries=RETRIES, timeout=30.0) as pool:
                answer = pool.request(method, f"{self.url.rstrip('/')}{path}", json=body, headers=headers)
        except urllib3.exceptions.HTTPError as error:
            raise UpstreamError(f"{method} {path}: {error}") from error
        if answer.status >= 300:
            said = answer.data[:300].decode(errors="replace")
            problem = UpstreamError(f"{method} {path}: the forge answered {answer.status}: {said}")
            if answer.status == HTTPStatus.FORBIDDEN:
                problem.refusal = "access-denied"
            raise problem
        try:
            return TypeAdapter(form).validate_json(answer.data)
        except ValidationError as error:
            raise UpstreamError(f"{method} {path}: the answer does not have the documented form") from error

    def pages(self, form: type[_T], path: str) -> Iterator[_T]:
        """Yield the items of a list, page by page. Raises UpstreamError, also for a list without an end."""
        join = "&" if "?" in path else "?"
        for page in range(1, MOST_PAGES + 1):
            items = self.call(list[form], "GET", f"{path}{join}per_page={PAGE}&page={page}")  # type: ignore[valid-type]
            yield from items
            if len(items) < PAGE:
                return
        raise UpstreamError(f"GET {path}: more than {MOST_PAGES * PAGE} items")


class _Account(BaseModel):
    id: int
    login: str = ""
    """On GitHub."""
    username: str = ""
    """On GitLab."""


class _Pull(BaseModel):
    number: int
    user: _Account
    merged_at: datetime | None = None


class _IssueComment(BaseModel):
    id: int
    body: str | None = ""
    user: _Account | None = None


class _MergeRequest(BaseModel):
    iid: int
    author: _Account
    state: str


class _Note(BaseModel):
    id: int
    body: str
    author: _Account
    system: bool = False


@dataclass(frozen=True, slots=True)
class GitHub:
    """Pull requests, with GITHUB_TOKEN (`permissions: pull-requests: write`) or a token of a user or an app."""

    api: Api
    environment: Mapping[str, str]

    @property
    def _repository(self) -> str:
        return f"/repos/{self.environment['GITHUB_REPOSITORY']}"

    def request(self) -> Request:
        """See `Forge`: by the ref of a pull request's run, else by the commit."""
        found = re.fullmatch(r"refs/pull/(\d+)/(merge|head)", self.environment.get("GITHUB_REF", ""))
        if found is not None:
            return self._request(self.api.call(_Pull, "GET", f"{self._repository}/pulls/{found[1]}"))
        commit = self.environment.get("GITHUB_SHA", "")
        pulls = self.api.pages(_Pull, f"{self._repository}/commits/{quote(commit)}/pulls")
        return self._request(_only([pull for pull in pulls if pull.merged_at is not None], commit))

    def _request(self, pull: _Pull) -> Request:
        return Request(pull.number, pull.user.login, f"{self.environment['GITHUB_REPOSITORY']}#{pull.number}")

    def comments(self, request: Request) -> Iterator[Comment]:
        """See `Forge`."""
        ours = self._account()
        for comment in self.api.pages(_IssueComment, f"{self._repository}/issues/{request.number}/comments"):
            if comment.user is not None and comment.user.login == ours:
                yield Comment(comment.id, comment.body or "")

    def _account(self) -> str:
        try:
            return self.api.call(_Account, "GET", "/user").login
        except UpstreamError as error:
            if error.refusal != "access-denied":
                raise  # whose comments are ours is not known
            return BOT  # the token of a pipeline is of no user

    def create(self, request: Request, body: str) -> None:
        """See `Forge`."""
        self.api.call(_IssueComment, "POST", f"{self._repository}/issues/{request.number}/comments", {"body": body})

    def update(self, request: Request, comment: Comment, body: str) -> None:  # noqa: ARG002 - as GitLab has it
        """See `Forge`."""
        self.api.call(_IssueComment, "PATCH", f"{self._repository}/issues/comments/{comment.identity}", {"body": body})


@dataclass(frozen=True, slots=True)
class GitLab:
    """Merge requests, with a project's or group's access token in TASKGOV_GITLAB_TOKEN: job tokens write no notes."""

    api: Api
    environment: Mapping[str, str]

    @property
    def _project(self) -> str:
        return f"/projects/{quote(self.environment['CI_PROJECT_ID'], safe='')}"

    def request(self) -> Request:
        """See `Forge`: by the variable of a merge request's pipeline, else by the commit."""
        number = self.environment.get("CI_MERGE_REQUEST_IID")
        if number:
            return self._request(self.api.call(_MergeRequest, "GET", f"{self._project}/merge_requests/{quote(number)}"))
        commit = self.environment.get("CI_COMMIT_SHA", "")
        found = self.api.pages(_MergeRequest, f"{self._project}/repository/commits/{quote(commit)}/merge_requests")
        return self._request(_only([request for request in found if request.state == "merged"], commit))

    def _request(self, request: _MergeRequest) -> Request:
        name = f"{self.environment.get('CI_PROJECT_PATH', '')}!{request.iid}"
        return Request(request.iid, request.author.username, name)

    def _notes(self, request: Request) -> str:
        return f"{self._project}/merge_requests/{request.number}/notes"

    def comments(self, request: Request) -> Iterator[Comment]:
        """See `Forge`."""
        ours = self.api.call(_Account, "GET", "/user").id
        for note in self.api.pages(_Note, f"{self._notes(request)}?sort=asc&order_by=created_at"):
            if note.author.id == ours and not note.system:
                yield Comment(note.id, note.body)

    def create(self, request: Request, body: str) -> None:
        """See `Forge`."""
        self.api.call(_Note, "POST", self._notes(request), {"body": body})

    def update(self, request: Request, comment: Comment, body: str) -> None:
        """See `Forge`."""
        self.api.call(_Note, "PUT", f"{self._notes(request)}/{comment.identity}", {"body": body})


def _only(merged: list[_T], commit: str) -> _T:
    if len(merged) != 1:
        raise InvalidRequestError(f"commit {commit} was merged with {len(merged)} requests instead of one")
    return merged[0]
