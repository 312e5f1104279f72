"""A server that speaks the OpenAI protocol and misbehaves as it is told. It also counts what it delivered."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Json = Any
USAGE = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
ANSWER = """### FILE: train.py
```python
LEARNING_RATE = 0.2
WEIGHT_DECAY = 0.02
HIDDEN_UNITS = 32
DROPOUT = 0.5
EPOCHS = 5
```"""


@dataclass(frozen=True)
class Received:
    """A request."""

    path: str
    headers: dict[str, str]
    body: Json

    @property
    def said(self) -> str:
        """The last turn."""
        return str(self.body["messages"][-1]["content"])


class Exchange:
    """One request and the socket to answer it on."""

    def __init__(self, handler: BaseHTTPRequestHandler, server: Stub, request: Received) -> None:
        self.handler = handler
        self.server = server
        self.request = request

    def send(
        self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None, length: int | None = None
    ) -> None:
        self.handler.send_response(status)
        for name, value in (headers or {}).items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("Content-Length", str(len(body) if length is None else length))
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def cut(self) -> None:
        self.handler.close_connection = True


Behaviour = Callable[[Exchange], None]


def reply(text: str | None = ANSWER, *, usage: Json = USAGE, finish: str = "stop", **message: Json) -> Behaviour:
    """A completion as it should be."""
    data = {
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "stub-2026-01-01",
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": text} | message}
        ],
    }  # fmt: skip
    if usage is not None:
        data["usage"] = usage

    def behave(exchange: Exchange) -> None:
        exchange.server.delivered.append(usage)
        exchange.send(json.dumps(data).encode())

    return behave


def json_body(data: Json, status: int = 200, **headers: str) -> Behaviour:
    return raw(json.dumps(data).encode(), status, **headers)


def error(
    status: int, message: str = "no", *, code: Json = None, type: str = "", param: str = "", **headers: str
) -> Behaviour:
    """An error in OpenAI's form."""
    return json_body({"error": {"message": message, "type": type, "param": param, "code": code}}, status, **headers)


def raw(body: bytes, status: int = 200, **headers: str) -> Behaviour:
    return lambda exchange: exchange.send(body, status, headers)


def truncated(exchange: Exchange) -> None:
    """A complete HTTP answer whose JSON is not."""
    exchange.send(b'{"id": "chatcmpl-1", "choices": [{"message": {"role": "assistant", "content": "half of')


def cut_off(exchange: Exchange) -> None:
    """Promises more bytes than it sends."""
    exchange.send(b'{"id": "chatcmpl-1", "choi', length=1000)
    exchange.cut()


def reset(exchange: Exchange) -> None:
    """Closes without an answer."""
    exchange.cut()


def hang(exchange: Exchange) -> None:
    """Never answers."""
    exchange.server.released.wait(30)
    exchange.cut()


def drip(exchange: Exchange) -> None:
    """Answers one byte at a time, for ever: each comes before a socket's timeout."""
    exchange.send(b'{"id": "', length=10**9)
    while not exchange.server.released.wait(0.01):
        try:
            exchange.handler.wfile.write(b"x")
        except OSError:
            break
    exchange.cut()


def huge(exchange: Exchange) -> None:
    """20 MB of a reply."""
    exchange.send(b'{"choices": [{"message": {"role": "assistant", "content": "' + b"x" * 20_000_000 + b'"}}]}')


@dataclass
class Stub:
    """The server. ``script`` is played in order, then ``otherwise`` for ever; ``decide`` goes before both."""

    script: list[Behaviour] = field(default_factory=list)
    otherwise: Behaviour = field(default_factory=reply)
    decide: Callable[[Received], Behaviour] | None = None
    models: Behaviour = field(default_factory=lambda: json_body({"object": "list", "data": [{"id": "stub"}]}))
    received: list[Received] = field(default_factory=list)
    """Requests for completions."""
    delivered: list[Json] = field(default_factory=list)
    """The usage of each completion that was sent."""

    def __enter__(self) -> Stub:
        self.released = threading.Event()
        self._turn = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _answer(self, request: Received) -> Behaviour:
        if request.path.endswith("/models"):
            return self.models
        with self._turn:
            self.received.append(request)
            if self.decide:
                return self.decide(request)
            return self.script.pop(0) if self.script else self.otherwise

    def _handler(stub) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                self._serve(None)

            def do_POST(self) -> None:
                self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

            def _serve(self, body: Json) -> None:
                request = Received(self.path, {k.lower(): v for k, v in self.headers.items()}, body)
                try:
                    stub._answer(request)(Exchange(self, stub, request))
                except OSError:  # the client has had enough
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        return Handler
