"""Two thousand calls to an endpoint that fails at random in every way: all is accounted for."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from labcoat.errors import LabcoatError
from labcoat.history import History
from labcoat.models import ModelAway, ModelRefuses, Models
from labcoat.models.endpoint import EndpointModel
from labcoat.models.settings import Endpoint
from tests.models import stub_server
from tests.models.stub_server import Behaviour, Received, Stub, error, json_body, raw, reply

Simulate = Callable[..., History]
STEPS = 1000  # of two calls each


@dataclass
class Counted:
    """What the server did for one call: how many requests, and the tokens of what it delivered."""

    requests: int = 0
    tokens: int = 0
    exact: bool = True
    fatal: bool = False


PASSING: list[tuple[Behaviour, bool]] = [  # and whether tokens of it are unknown
    (error(429), False), (error(429, Retry_After="3"), False), (error(500), False), (raw(b"bad gateway", 502), False),
    (stub_server.reset, False), (json_body({"error": {"code": 503, "message": "away"}}), False),
    (raw(b"<html></html>"), False), (stub_server.truncated, True), (stub_server.cut_off, True),
    (json_body({"choices": []}), True),
]  # fmt: skip
SLOW = [stub_server.hang, stub_server.drip]  # each takes a whole deadline
FINAL: list[tuple[Behaviour, bool]] = [
    (error(400, code="context_length_exceeded"), False), (error(400, code="content_filter"), False),
    (stub_server.huge, True), (reply(usage=None), True), (reply(usage={"prompt_tokens": -1}), True),
]  # fmt: skip
FATAL: list[Behaviour] = [error(401), error(404), error(429, code="insufficient_quota")]


class Moody:
    """Decides at random, and keeps its own books."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.calls = [Counted()]
        self.slow = SLOW * 2

    def __call__(self, request: Received) -> Behaviour:
        call = self.calls[-1]
        call.requests += 1
        draw = self.random.random()
        if draw < 0.03:
            behaviour, unknown = (self.slow.pop(), True) if self.slow else self.random.choice(PASSING)
            call.exact &= not unknown
            return behaviour
        self.calls.append(Counted())
        if draw < 0.046:
            behaviour, unknown = self.random.choice(FINAL)
            call.exact &= not unknown
            return behaviour
        if draw < 0.05:
            call.fatal = True
            return self.random.choice(FATAL)
        prompt, cached, output = (self.random.randrange(1000) for _ in range(3))
        call.tokens += prompt + cached + output
        usage = {"prompt_tokens": prompt + cached, "completion_tokens": output}
        return reply(usage=usage | {"prompt_tokens_details": {"cached_tokens": cached}})


@pytest.mark.slow
def test_two_thousand_calls_with_failures_of_every_kind_are_all_accounted_for(stub: Stub, simulate: Simulate) -> None:
    stub.decide = server = Moody(5)
    stops: list[LabcoatError] = []
    while True:
        model = EndpointModel("stub", "stub", Endpoint(base_url=stub.url, timeout=3.0), lambda seconds: None)
        try:
            history = simulate("random", steps=STEPS, model=Models({"*": model}))
            break
        except (ModelAway, ModelRefuses) as stopped:
            stops.append(stopped)
    taken = [e["result"]["reply"] for e in history.journal.events if e["kind"] in ("ask", "edit", "spent")]
    calls = [call for call in server.calls if call.requests and not (call.fatal and call.exact)]
    assert len(history.trials) == STEPS and len([call for call in calls if not call.fatal]) == 2 * STEPS
    assert len(stops) == len([call for call in server.calls if call.fatal]) > 3
    assert [reply["requests"] for reply in taken] == [call.requests for call in calls]
    assert sum(call.requests for call in server.calls) == len(stub.received) > 2050
    totals = [sum(n for part, n in one["usage"].items() if part != "of_which_reasoning") for one in taken]
    for one, total, call in zip(taken, totals, calls, strict=True):
        assert one["usage_estimated"] == (not call.exact)
        assert total == call.tokens if call.exact else total > call.tokens
    assert history.spent()["tokens"] == sum(totals)
    assert sum(total for total, call in zip(totals, calls, strict=True) if call.exact) == sum(
        call.tokens for call in calls if call.exact
    )
