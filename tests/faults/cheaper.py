"""Make a cell cheaper without changing what comes of it: what is left out here nobody looks at.

* Nobody verifies the signature of a call: who calls is read from its key. (A function's address does verify; commands
  sign those requests by themselves, and none is in the matrix.)
* The cluster's API answers in the same thread, not over a socket of its own.
"""

from __future__ import annotations

import contextvars
import io
from typing import TYPE_CHECKING, Any, Final

from botocore.auth import SigV4Auth
from urllib3 import HTTPResponse
from urllib3.connectionpool import HTTPConnectionPool
from werkzeug.test import EnvironBuilder, run_wsgi_app

from taskgov_embedded.walkthrough.world import EKS_NAME

if TYPE_CHECKING:
    from collections.abc import Mapping

    from taskgov_embedded.walkthrough.world import World

UNSIGNED: Final = "0" * 64
ADDRESS: Final = "http://127.0.0.1:1"
"""Where nothing listens: the URL of the cluster's API while it answers in the same thread."""


def install(world: World) -> None:
    """Make what this process does with the world cheaper from now on. It is a process that ends with its cell.

    The thread that served the cluster's API did not come along into it.
    """
    world.stack.eks.register_cluster(EKS_NAME, ADDRESS, certificate_authority="")
    replaced: dict[tuple[Any, str], Any] = {
        (SigV4Auth, "canonical_request"): lambda _auth, _request: "",
        (SigV4Auth, "string_to_sign"): lambda _auth, _request, _canonical_request: "",
        (SigV4Auth, "signature"): lambda _auth, _string_to_sign, _request: UNSIGNED,
        (HTTPConnectionPool, "_make_request"): _answering(world),
    }
    for (owner, name), replacement in replaced.items():
        setattr(owner, name, replacement)


def _answering(world: World) -> Any:
    """Return what takes the place of a request over a connection."""

    def make_request(
        _pool: Any, _connection: Any, method: str, url: str, body: Any, headers: Mapping[str, str], **_how: Any
    ) -> HTTPResponse:
        builder = EnvironBuilder(url, ADDRESS, method=method, data=body, headers=[*headers.items()])
        answer: list[Any] = []

        def respond() -> None:
            answer.extend(run_wsgi_app(world.api_server.respond, builder.get_environ(), buffered=True))

        # In a context of its own, as on a thread of its own: the server is in no function.
        contextvars.Context().run(respond)
        chunks, status, sent = answer
        content = io.BytesIO(b"".join(chunks))
        return HTTPResponse(content, headers=dict(sent), status=int(status.split()[0]), preload_content=False)

    return make_request
