"""One comment for each document on a request: written, replaced, or left out where there is nothing to say."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from taskgov_cli.plan_markdown import MARK

if TYPE_CHECKING:
    from taskgov_cli.review.forge import Comment, Forge, Request

_REVIEWED: Final = re.compile(r"<!-- taskgov reviewed: (plan-[0-9a-f]{16}:[0-9a-f]{64}) -->")
"""The last line of a plan's comment (`plan_markdown.REVIEWED`)."""


def put(forge: Forge, request: Request, about: str, body: str, *, has_news: bool) -> str:
    """Write or replace the comment; return what was done.

    No comment is created if nothing changes. An existing comment is replaced anyway, because it would be outdated.
    """
    standing = find(forge, request, about)
    if standing is None:
        if not has_news:
            return "no comment: nothing changes"
        forge.create(request, body)
        return "comment written"
    if standing.body.strip() == body.strip():
        return "the comment stands"
    forge.update(request, standing, body)
    return "comment replaced"


def find(forge: Forge, request: Request, about: str) -> Comment | None:
    """Return our last comment about this document, or None."""
    mark = MARK.format(about=about)
    ours = [comment for comment in forge.comments(request) if comment.body.lstrip().partition("\n")[0].strip() == mark]
    return ours[-1] if ours else None


def reviewed(forge: Forge, request: Request, about: str) -> str | None:
    """Return `PLAN_ID:DIGEST` of the comment about this document; None where there is none, or it is about no plan."""
    comment = find(forge, request, about)
    if comment is None:
        return None
    last = comment.body.rstrip().rpartition("\n")[2].strip()
    found = _REVIEWED.fullmatch(last)
    return None if found is None else found[1]
