"""Serve an open stack to other processes: AWS over HTTP, in real time. `taskgov local` and its tests use it.

A request takes the same way as a call of this process (`aws_requests`), one at a time. It has to be signed; any key
will do, a key that the stack has given to a role is checked as that role. An order to the stack's entry comes with the
entry's name as Host; its signature is checked, so its key is one given out.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Self

from botocore.awsrequest import AWSPreparedRequest
from botocore.compat import HTTPHeaders
from moto.core.botocore_stubber import BotocoreStubber
from werkzeug.serving import WSGIRequestHandler, make_server
from werkzeug.wrappers import Request, Response

from taskgov_embedded.iam.identity import read_signature

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from werkzeug.serving import BaseWSGIServer

    from taskgov_embedded.iam.identity import Signature
    from taskgov_embedded.stack import Stack

HOSTS = {"sagemaker": "api.sagemaker"}
"""Services whose host does not begin with the name in the signature."""
PUMP_SECONDS = 0.1
"""How late what falls due may happen: queues, waits of state machines."""
POLL_SECONDS = 0.02
NOT_PASSED_ON = {"content-length", "transfer-encoding", "connection", "date", "server"}
"""Headers that belong to the connection, not to the answer."""


class StackServer:
    """Listens on each of `hosts` at `port` while it is open: `with StackServer(stack, ["127.0.0.1"]) as server:`.

    `stack` is open and its clock has real time. What falls due in it happens meanwhile; recurring schedules do not
    fire, so that nothing changes unless requested.
    """

    def __init__(self, stack: Stack, hosts: Sequence[str], port: int = 0) -> None:
        self._stack = stack
        self._hosts = tuple(hosts)
        self._port = port
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._servers: list[BaseWSGIServer] = []
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        """The address on the first host."""
        return f"http://{self._hosts[0]}:{self._servers[0].port}"

    def __enter__(self) -> Self:
        for host in self._hosts:
            server = make_server(host, self._port, self._respond, threaded=True, request_handler=_QuietHandler)
            self._servers.append(server)
            self._start(lambda opened=server: opened.serve_forever(POLL_SECONDS))
        self._start(self._pump)
        return self

    def __exit__(self, *_about: object) -> None:
        self._stopped.set()
        for server in self._servers:
            server.shutdown()
        for thread in self._threads:
            thread.join()
        for server in self._servers:
            server.server_close()

    def _start(self, target: Any) -> None:
        thread = threading.Thread(target=target, name="stack-server", daemon=True)
        thread.start()
        self._threads.append(thread)

    def _pump(self) -> None:
        """Do what has fallen due, until the server stops."""
        while not self._stopped.wait(PUMP_SECONDS):
            with self._lock:
                self._stack.account.turns.run(0, recurring=False)

    def _respond(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        request = Request(environ)
        signature = read_signature(request.headers.get("Authorization", ""))
        if signature is None:
            return Response("only signed requests are answered", status=403)(environ, start_response)
        with self._lock:
            answer = self._stack.entry.answer(_as_sent_to(f"https://{request.host}", request))
            if answer is None:
                answer = BotocoreStubber().process_request(_as_sent_to(_aws(signature), request))
        status, headers, body = answer if answer is not None else (501, {}, "the embedded stack has no such service")
        kept = {name: str(value) for name, value in headers.items() if name.lower() not in NOT_PASSED_ON}
        return Response(body, status=int(status), headers=kept)(environ, start_response)


class _QuietHandler(WSGIRequestHandler):
    """The stack keeps every call itself; a line on standard error for each would drown what is shown."""

    def log(self, type: str, message: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


def _aws(signature: Signature) -> str:
    """Return where the request would go without an endpoint of its own."""
    return f"https://{HOSTS.get(signature.signing_name, signature.signing_name)}.{signature.region}.amazonaws.com"


def _as_sent_to(address: str, request: Request) -> AWSPreparedRequest:
    path = request.environ.get("RAW_URI") or request.full_path
    headers = HTTPHeaders()
    for name, value in request.headers.items():
        if name.lower() not in {"host", "connection"}:
            headers[name] = value
    return AWSPreparedRequest(request.method, f"{address}{path}", headers, request.get_data(), stream_output=False)
