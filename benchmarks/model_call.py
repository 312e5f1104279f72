"""What labcoat costs per model call, beside the bare SDK call against the same server.

    python benchmarks/model_call.py [--calls N]

A server in a process of its own answers at once. In one run, in turn: a call with the SDK's plain client, and a call
through labcoat's client (one deadline, bounded body, verdict, usage in parts), with and without a schema to check.
The figure is the difference of the medians; the command exits 1 if it is above the bound.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import openai

from labcoat.models import Call, Part, Prompt
from labcoat.models.endpoint import EndpointModel
from labcoat.models.settings import Endpoint

BOUND_MS = 5.0
SERVER = """
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TEXT = json.dumps({"score": 1, "why": "because " * 200})
BODY = json.dumps({
    "id": "1", "object": "chat.completion", "created": 1, "model": "stub",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}],
    "usage": {"prompt_tokens": 4000, "completion_tokens": 400, "total_tokens": 4400},
}).encode()

class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *args):
        pass

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(f"http://127.0.0.1:{server.server_port}/v1", flush=True)
server.serve_forever()
"""
SCHEMA = {
    "type": "object", "properties": {"score": {"type": "integer"}, "why": {"type": "string"}},
    "required": ["score", "why"], "additionalProperties": False,
}  # fmt: skip
PROMPT = Prompt.of([Part("task", "Improve the model. " * 600), Part("instruction", "One idea.")])


def milliseconds(action: Callable[[], object]) -> float:
    """Wall clock of one call."""
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1000


def main() -> int:
    """Measure in turn and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=300)
    count = parser.parse_args().calls
    with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        url = server.stdout.readline().strip()
        bare = openai.OpenAI(api_key="none", base_url=url, max_retries=0)
        ours = EndpointModel("stub", "stub", Endpoint(base_url=url))
        turns: list[Any] = [{"role": "user", "content": PROMPT.text}]
        ways: list[tuple[str, Callable[[], object]]] = [
            ("bare SDK", lambda: bare.chat.completions.create(model="stub", messages=turns)),
            ("labcoat", lambda: ours.chat(PROMPT, Call("idea", "/0", 0, 0))),
            ("labcoat, with a schema", lambda: ours.chat(PROMPT, Call("idea", "/0", 0, 0, SCHEMA))),
        ]
        taken: list[list[float]] = [[] for _ in ways]
        for number in range(count + 5):  # the first rounds open connections and are not counted
            for (_, action), into in zip(ways, taken, strict=True):
                value = milliseconds(action)
                if number >= 5:
                    into.append(value)
        server.terminate()
    base = statistics.median(taken[0])
    failed = False
    print(f"{'what':24} {'median ms':>9} {'min':>6} {'p95':>6} {'over bare':>9} {'bound':>6}")
    for (name, _), values in zip(ways, taken, strict=True):
        median = statistics.median(values)
        failed |= median - base > BOUND_MS
        ninety_fifth = sorted(values)[int(len(values) * 0.95)]
        print(f"{name:24} {median:9.2f} {min(values):6.2f} {ninety_fifth:6.2f} {median - base:9.2f} {BOUND_MS:6.1f}")
    return int(failed)


if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, openai {openai.__version__}, in turn")
    sys.exit(main())
