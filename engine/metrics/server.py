"""`/metrics` and `/health` over HTTP, from threads that never touch an engine: they read a snapshot."""

import os
import socket
import sys
import threading
from collections.abc import Iterable
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from prometheus_client import make_wsgi_app

from staticfire.engine.errors import EngineError
from staticfire.engine.metrics.collector import make_registry
from staticfire.engine.metrics.snapshot import Snapshot, Source

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

IDLE_SECONDS: Final = 10
"""A connection that says nothing for so long is closed."""


class MetricsServer:
    """Serves from construction until `close`; a context manager.

    Attributes:
        url: Address of the server, with the port that was found where 0 was asked for.

    Args:
        source: Where scrapes read.
        port: TCP port; 0 finds a free one.
        host: Address to listen on.

    Raises:
        EngineError: The address cannot be listened on.
    """

    def __init__(self, source: Source, port: int, host: str = "127.0.0.1") -> None:
        self._server = _listen(make_app(source), host, port)
        self.port = int(self._server.server_address[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop listening; closing again does nothing."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def make_app(source: Source) -> "WSGIApplication":
    """The two pages as a WSGI application."""
    metrics = make_wsgi_app(make_registry(source))

    def app(environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            answer: Iterable[bytes] = metrics(environ, start_response)
            return answer
        if path != "/health":
            return _text(start_response, HTTPStatus.NOT_FOUND, "Not found; there are /metrics and /health.\n")
        if environ["REQUEST_METHOD"] not in {"GET", "HEAD"}:
            return _text(start_response, HTTPStatus.METHOD_NOT_ALLOWED, "GET it.\n")
        return _text(start_response, *health(source()))

    return app


def health(snapshot: Snapshot) -> tuple[HTTPStatus, str]:
    """200 while every engine lives, else 503 with what is wrong, an engine a line."""
    faults = [
        f"engine {index} is dead: {found.dead}" if found.dead else f"engine {index} is not ready"
        for index, found in sorted(snapshot.items())
        if found.dead is not None or found.config is None
    ]
    if not snapshot:
        faults = ["no engine is ready"]
    if faults:
        return HTTPStatus.SERVICE_UNAVAILABLE, "".join(f"{fault}\n" for fault in faults)
    return HTTPStatus.OK, "ok\n"


def _text(start_response: "StartResponse", status: HTTPStatus, text: str) -> list[bytes]:
    body = text.encode()
    headers = [("Content-Type", "text/plain; charset=utf-8"), ("Content-Length", str(len(body)))]
    start_response(f"{status.value} {status.phrase}", headers)
    return [body]


class _Server(ThreadingMixIn, WSGIServer):
    """A thread a connection; names are not looked up."""

    daemon_threads = True
    allow_reuse_port = False  # a second server on the port must fail, not share it

    def server_bind(self) -> None:
        """Bind without asking DNS for the host's full name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over a client that went away; anything else is ours, and is shown."""
        if not isinstance(sys.exception(), ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


class _Handler(WSGIRequestHandler):
    """Silent; drops connections that stay silent."""

    timeout = IDLE_SECONDS

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the standard library's name
        """Log nothing."""


def _listen(app: "WSGIApplication", host: str, port: int) -> WSGIServer:
    class _Family(_Server):
        address_family = socket.AF_INET6 if ":" in host else socket.AF_INET

    try:
        return make_server(host, port, app, _Family, _Handler)
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        if isinstance(error, OSError) and error.errno is not None and not isinstance(error, socket.gaierror):
            reason = os.strerror(error.errno)
        advice = "; choose another port, or 0 for any that is free" if "in use" in reason else ""
        raise EngineError(f"metrics on {host}:{port}: cannot listen: {reason}{advice}") from error
