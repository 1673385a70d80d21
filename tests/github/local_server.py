"""A small HTTP server on loopback that remembers what it was asked and answers as it is told."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True, slots=True)
class Asked:
    """One request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> Any:  # noqa: ANN401 -- a body is any JSON value
        return json.loads(self.body)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; None for the status closes the connection without one."""

    status: int | None
    body: Any = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


class LocalServer:
    """The server; `answer` may be replaced at any time."""

    def __init__(self, answer: Callable[[Asked], Answer]) -> None:
        self.answer = answer
        self.asked: list[Asked] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,))
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def close(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                length = int(self.headers.get("Content-Length", "0"))
                headers = {name.lower(): value for name, value in self.headers.items()}
                asked = Asked(self.command, self.path, headers, self.rfile.read(length))
                server.asked.append(asked)
                answer = server.answer(asked)
                if answer.status is None:
                    self.close_connection = True
                    return
                body = answer.body if isinstance(answer.body, bytes) else _encoded(answer.body)
                self.send_response(answer.status)
                for name, value in answer.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST = do_DELETE = _serve  # noqa: N815 -- the base class's spelling

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def _encoded(body: object) -> bytes:
    return json.dumps(body).encode()
