"""Find the function of moto that answers a URL.

Moto looks through the patterns of all its services for each request, and makes those of the service again. What it
finds is the same for the lifetime of the process, so it is found once here.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from moto import backend_index, backends
from moto.core.base_backend import BackendDict
from moto.core.exceptions import HTTPException

Answer = tuple[int, dict[str, str], Any]
"""Status, headers and body of a response, as moto has it."""
Handler = Callable[[Any, str, Any], Answer]
"""Answers a request, its URL and its headers."""


def answer_of_moto(url: str, request: Any) -> Answer | None:
    """Let moto answer a normalized request that was sent to a URL; None when nothing of moto is there."""
    handler = handler_of(url.partition("?")[0])
    if handler is None:
        return None
    try:
        status, headers, body = handler(request, request.raw_url, request.headers)
    except HTTPException as error:
        return error.code or 500, dict(error.get_headers()), error.get_body()
    return status, headers, body


@lru_cache(maxsize=4096)
def handler_of(url: str) -> Handler | None:
    """Return what moto has at a URL without its query: the first of the first service that matches."""
    for service, pattern in backend_index.backend_url_patterns:
        if pattern.match(url):
            for own_pattern, handler in _handlers(service):
                if own_pattern.match(url):
                    return handler
    return None


@cache
def _handlers(service: str) -> list[tuple[re.Pattern[str], Handler]]:
    made = backends.get_backend(service)
    known = made["123456789012"] if isinstance(made, BackendDict) else made
    backend = next((known[name] for name in ("us-east-1", "aws", "global") if name in known), None)
    return [] if backend is None else [(re.compile(url), handler) for url, handler in backend.urls.items()]
