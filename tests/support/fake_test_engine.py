"""A server that stands in for Buildkite Test Engine: it keeps what it is sent, and answers as it is told to."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class TestEngine:
    """What was uploaded.

    Attributes:
        uploads: The documents, in the order of their arrival.
        status: The status that each upload is answered with.
        url: Where it listens; the value of BUILDKITE_ANALYTICS_API_URL.
    """

    __test__ = False  # no class for pytest to collect

    def __init__(self) -> None:
        self.uploads: list[dict[str, Any]] = []
        self.tokens: set[str | None] = set()
        self.status = 202
        self.url = ""

    @property
    def results(self) -> list[dict[str, Any]]:
        """Every result of every upload."""
        return [result for upload in self.uploads for result in upload["data"]]


@contextmanager
def serving() -> Iterator[TestEngine]:
    """Listen on a free port of this machine."""
    engine = TestEngine()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            assert self.path == "/v1/uploads"
            engine.uploads.append(json.loads(body))
            engine.tokens.add(self.headers["Authorization"])
            self.send_response(engine.status)
            self.end_headers()
            self.wfile.write(b"{}")

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    engine.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield engine
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
