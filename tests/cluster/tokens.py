"""Who signed a token? The API server asks here, as EKS' own API server asks its authenticator (a TokenReview webhook).

The token of taskgov is a presigned STS call; who may use it, and into which groups the access entries put it, is what a
test says with `entries`.
"""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from taskgov_embedded.cluster.access import TOKEN_PREFIX, TokenVerifier, UnauthorizedError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Authenticator:
    """The webhook, on loopback. Until `entries` is called nobody's token is good."""

    def __init__(self, port: int) -> None:
        self._verifier: TokenVerifier | None = None
        self._groups_of: Callable[[str], tuple[str, tuple[str, ...]]] = lambda _key: ("", ())
        self.refused: list[str] = []
        self.reviewed: list[str] = []
        """User names of good tokens, one for each review."""
        self._server = make_server("127.0.0.1", port, self._respond, threaded=True, request_handler=_Quiet)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def entries(self, verifier: TokenVerifier, groups_of: Callable[[str], tuple[str, tuple[str, ...]]]) -> None:
        """Check tokens with `verifier`; `groups_of` gives user name and groups of an access key."""
        self._verifier, self._groups_of = verifier, groups_of

    def stop(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def kubeconfig(self, folder: Path) -> Path:
        """Write what the API server needs to ask here."""
        path = folder / "authenticator.kubeconfig"
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "it", "cluster": {"server": f"http://127.0.0.1:{self._server.port}/review"}}],
            "users": [{"name": "api-server"}],
            "contexts": [{"name": "it", "context": {"cluster": "it", "user": "api-server"}}],
            "current-context": "it",
        }
        path.write_text(json.dumps(content))
        return path

    def _respond(self, environ: dict[str, Any], start_response: Any) -> Any:
        review = json.loads(Request(environ).get_data())
        status = self._status(review["spec"]["token"])
        answer = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "status": status}
        return Response(json.dumps(answer), content_type="application/json")(environ, start_response)

    def _status(self, token: str) -> dict[str, Any]:
        if self._verifier is None or not token.startswith(TOKEN_PREFIX):
            return {"authenticated": False, "error": "nobody's token is good here"}
        try:
            caller = self._verifier.verify(f"Bearer {token}")
        except UnauthorizedError as error:
            self.refused.append(str(error))
            return {"authenticated": False, "error": str(error)}
        user, groups = self._groups_of(caller.access_key_id)
        if not groups:
            return {"authenticated": False, "error": f"{user} has no access entry"}
        self.reviewed.append(user)
        return {"authenticated": True, "user": {"username": user, "groups": list(groups)}}


class _Quiet(WSGIRequestHandler):
    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""
