"""Read a list page by page, and refuse one that is known to be partial: it would look like a smaller world."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from taskgov.errors import UpstreamError

PAGE: Final = 500
MAX_PAGES: Final = 1000
"""Half a million objects: more than a cluster holds, so that a list without end is noticed."""


def list_pages(get: Callable[[Mapping[str, str]], Mapping[str, Any]], what: str) -> Iterator[list[dict[str, Any]]]:
    """Yield the items of each page; `get` is given the query of one page and returns the answer.

    Raises UpstreamError for a `continue` token that comes again, for more than `MAX_PAGES` pages, for an answer that is
    not a list, and for a last page that says that items remain (Kubernetes API conventions, "Retrieving large results
    sets in chunks").
    """
    query = {"limit": str(PAGE)}
    seen: set[str] = set()
    for _ in range(MAX_PAGES):
        answer = get(query)
        items, metadata = answer.get("items"), answer.get("metadata")
        if not isinstance(items, list) or not isinstance(metadata, Mapping):
            raise UpstreamError(f"{what}: the answer is not a list of objects")
        yield items
        token = metadata.get("continue")
        if not token:
            if remaining := metadata.get("remainingItemCount"):
                raise UpstreamError(f"{what}: the list ends, and the server says that {remaining} items remain")
            return
        if token in seen:
            raise UpstreamError(f"{what}: the server sends the same page again (continue {token[:40]!r})")
        seen.add(token)
        query = {"limit": str(PAGE), "continue": token}
    raise UpstreamError(f"{what}: the list has more than {MAX_PAGES} pages of {PAGE}")
