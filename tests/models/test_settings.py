"""labcoat.toml: endpoints by name, and errors that say where and what."""

from __future__ import annotations

from pathlib import Path

import pytest

from labcoat.errors import InputError
from labcoat.models import Models, load
from labcoat.models.endpoint import EndpointModel
from labcoat.models.settings import PUBLIC, read_settings

LOCAL = '[endpoint.local]\nbase_url = "http://localhost:8000/v1/"\n'


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "LABCOAT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(text: str, name: str = "labcoat.toml") -> None:
    Path(name).write_text(text)


def test_without_a_file_there_is_the_endpoint_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (read_settings().endpoint["openai"].base_url, read_settings().endpoint["openai"].key_env) == (
        PUBLIC, "OPENAI_API_KEY",
    )  # fmt: skip
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1234/v1")
    own = read_settings().endpoint["openai"]
    assert (own.base_url, own.key_env) == ("http://localhost:1234/v1", None), "a server of one's own needs no key"
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert read_settings().endpoint["openai"].key() == "sk-1"


def test_any_number_of_endpoints_and_the_built_in_one_beside() -> None:
    write(LOCAL + '[endpoint.router]\nbase_url = "https://openrouter.ai/api/v1"\nkey_env = "ROUTER_KEY"\n')
    endpoints = read_settings().endpoint
    assert sorted(endpoints) == ["local", "openai", "router"]
    assert endpoints["local"].base_url == "http://localhost:8000/v1"


def test_the_built_in_endpoint_can_have_parameters() -> None:
    write("[endpoint.openai]\ntemperature = 0.5\n")
    model = load("openai:gpt-x")
    assert isinstance(model, EndpointModel)
    assert (model.name, model.endpoint.base_url) == ('openai:gpt-x {"temperature":0.5}', PUBLIC)


def test_the_file_can_lie_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(LOCAL, "other.toml")
    monkeypatch.setenv("LABCOAT_CONFIG", str(tmp_path / "other.toml"))
    assert "local" in read_settings().endpoint
    monkeypatch.setenv("LABCOAT_CONFIG", "gone.toml")
    with pytest.raises(InputError, match=r"gone.toml: No such file or directory \(\$LABCOAT_CONFIG names it\)"):
        read_settings()


def test_a_model_is_named_with_its_endpoint() -> None:
    write(LOCAL)
    assert Models.parse("idea=openai:org/model:free@local,*=openai:gpt-x").spec == {
        "*": "openai:gpt-x", "idea": "openai:org/model:free@local",
    }  # fmt: skip
    model = load("openai:claude@2026@openai")
    assert isinstance(model, EndpointModel) and (model.model, model.name) == ("claude@2026", "openai:claude@2026")


def test_an_endpoint_that_is_not_there_is_refused_with_the_known_ones() -> None:
    write(LOCAL)
    with pytest.raises(InputError, match=r"no \[endpoint.lokal\]; known: local, openai \(.* openai:m@lokal@openai\)"):
        load("openai:m@lokal")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[endpoint.a]\n", "endpoint.a.base_url: Field required"),
        (LOCAL + 'key = "sk-secret-1"', "endpoint.local.key: no such field"),
        (LOCAL + 'key_env = "sk-secret-1"', "endpoint.local.key_env: the NAME of an environment variable"),
        (LOCAL + 'temperature = "sk-secret-1"', "endpoint.local.temperature: Input should be a valid number"),
        (LOCAL + "extra_body = { stream = true }", "endpoint.local.extra_body: stream: labcoat's own"),
        (LOCAL + "extra_body = { day = 2020-01-01 }", "endpoint.local.extra_body: cannot be sent as JSON"),
        (LOCAL + "extra_body = { top = nan }", "endpoint.local.extra_body: cannot be sent as JSON"),
        (LOCAL + "temperature = inf", "endpoint.local.temperature: Input should be a finite number"),
        (LOCAL + "timeout = 0", "endpoint.local.timeout: Input should be greater than 0"),
        (LOCAL + "window = 10", "endpoint.local.window: Input should be greater than or equal to 512"),
        (LOCAL + 'seed = "mine"', "endpoint.local.seed"),
        (LOCAL + '[endpoint.local.models."a/b"]\ntop = 1', "endpoint.local.models.a/b.top: no such field"),
        ('[endpoint.a]\nbase_url = "localhost:8000"', "endpoint.a.base_url: an address like http://localhost:8000/v1"),
        ('[endpoint.a]\nbase_url = "http://me:sk-secret-1@host/v1"', "endpoint.a.base_url: no key in the address"),
        ('[endpoint.a]\nbase_url = "http://me:sk-secret-1/v1"', "endpoint.a.base_url: an address like"),
        ('[endpoint.a]\nbase_url = "http://host:99999/v1"', "endpoint.a.base_url: an address like"),
        ('[endpoint.a]\nbase_url = "http://host/v1#sk-secret-1"', "endpoint.a.base_url: no key in the address"),
        (LOCAL + 'headers = { "X Team" = "sk-secret-1" }', "endpoint.local.headers.X Team.[key]: no name of an HTTP"),
        (LOCAL + 'headers = { X = "sk-secret-1\\n" }', "endpoint.local.headers.X: holds what no HTTP header can carry"),
        (LOCAL + 'headers = { X = "sk-secret-1 ключ" }', "endpoint.local.headers.X: holds what no HTTP header can"),
        ('[endpoint.a]\nbase_url = "http://host/v1/chat/completions"', "ends before /chat/completions"),
        ("endpoint = 3", "endpoint: Input should be a valid dictionary"),
        ("endpoints = {}", "endpoints: no such field"),
        ("[endpoint", "not TOML"),
    ],
)
def test_what_is_wrong_is_said_with_file_and_field_and_without_the_value(text: str, says: str) -> None:
    write(text)
    with pytest.raises(InputError) as error:
        read_settings()
    assert str(error.value).startswith("labcoat.toml:") and says in str(error.value)
    assert "sk-secret-1" not in str(error.value)


def test_an_address_in_the_environment_is_checked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "localhost")
    with pytest.raises(InputError, match=r"^\$OPENAI_BASE_URL:\n  endpoint.openai.base_url: an address"):
        read_settings()


@pytest.mark.parametrize("value", ["sk-ключ", "sk-1\n\nX-Other: 2"])
def test_a_key_that_no_header_can_carry_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", value)
    with pytest.raises(InputError, match=r"OPENAI_API_KEY \(key_env\) holds what no HTTP header can carry") as error:
        read_settings().endpoint["openai"].key()
    assert value not in str(error.value)
