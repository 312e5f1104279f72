"""``labcoat.toml``: the endpoints that a user names, and how their models are to answer.

It lies in the current folder, or where $LABCOAT_CONFIG says. It never holds a key: it names the environment variable
that does. Without a file there is one endpoint, ``openai``, as $OPENAI_BASE_URL and $OPENAI_API_KEY describe it.
"""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from labcoat.errors import InputError, of_field
from labcoat.journal import canonical

FILE = "labcoat.toml"
PUBLIC = "https://api.openai.com/v1"
BUILT_IN = "openai"
"""Name of the endpoint that needs no file."""
SHORTEST_SECRET = 8
"""What is shorter protects nothing (``EMPTY``, ``none``) and may stand in any text."""


def _url(value: str) -> str:
    try:
        parts = urlsplit(value)
        sound = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and value.isprintable()
    except ValueError:  # its words hold the value
        sound = False
    if not sound:
        raise ValueError("an address like http://localhost:8000/v1")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("no key in the address; name the environment variable that holds it with key_env or headers")
    if parts.path.rstrip("/").endswith("/completions"):
        raise ValueError("ends before /chat/completions, often with /v1")
    return value.rstrip("/")


def _variable(value: str) -> str:
    if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", value):
        raise ValueError("the NAME of an environment variable (capitals, digits, _), never the key itself")
    return value


def _extra(value: dict[str, Any]) -> dict[str, Any]:
    if ours := value.keys() & {"model", "messages", "stream", "n", "tools", "response_format"}:
        raise ValueError(f"{', '.join(sorted(ours))}: labcoat's own")
    try:
        canonical(value)
    except (TypeError, ValueError) as error:  # a date, nan
        raise ValueError(f"cannot be sent as JSON: {error}") from None
    return value


def _header_name(value: str) -> str:
    if not re.fullmatch(r"[!#$%&'*+.^_`|~\w-]+", value, re.ASCII):
        raise ValueError("no name of an HTTP header")
    return value


def _header_value(value: str) -> str:
    if not _fits_a_header(value):
        raise ValueError("holds what no HTTP header can carry")
    return value


def _fits_a_header(value: str) -> bool:
    return value.isascii() and value.isprintable()


HeaderName = Annotated[str, AfterValidator(_header_name)]
HeaderValue = Annotated[str, AfterValidator(_header_value)]
Variable = Annotated[str, AfterValidator(_variable)]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True, hide_input_in_errors=True)


class Parameters(_Section):
    """How a model is to answer. What is not set is not sent."""

    temperature: float | None = Field(None, ge=0, allow_inf_nan=False)
    top_p: float | None = Field(None, gt=0, le=1)
    reply_tokens: int | None = Field(None, gt=0)
    """Most tokens of a reply, hidden reasoning included."""
    reasoning_effort: str | None = None
    seed: int | Literal["run"] | None = None
    """A number for every call, or ``run``: one that follows from the run's seed and the call."""
    extra_body: Annotated[dict[str, Any], AfterValidator(_extra)] = {}
    """Further fields of the request, as they are."""
    window: int | None = Field(None, ge=512)
    """Tokens of prompt and reply together; asked of the endpoint where it is not set."""

    def sent(self) -> dict[str, Any]:
        """What changes answers, and so identifies the model in a run."""
        return self.model_dump(exclude_defaults=True, include=set(Parameters.model_fields) - {"window"})


class Endpoint(Parameters):
    """A server that speaks the OpenAI protocol; parameters given here hold for all its models."""

    base_url: Annotated[str, AfterValidator(_url)]
    key_env: Variable | None = None
    """Environment variable with the key; none is sent without it."""
    headers: dict[HeaderName, HeaderValue] = {}
    """Further headers. A value ``$NAME`` is taken from the environment."""
    timeout: float = Field(600, gt=0)
    """Seconds that one request may take, whatever it does meanwhile."""
    patience: float = Field(600, ge=0)
    """Seconds that a call waits in all for an endpoint that is away, before the run stops and can be resumed."""
    concurrency: int | None = Field(None, gt=0)
    """Most requests at a time, over all runs on this machine."""
    models: dict[str, Parameters] = {}
    """Parameters of single models, by name; they go before those of the endpoint."""

    def parameters(self, model: str) -> Parameters:
        """What holds for one model."""
        of_all = {name: getattr(self, name) for name in Parameters.model_fields}
        own = self.models.get(model, Parameters())
        return Parameters.model_validate(of_all | {name: getattr(own, name) for name in own.model_fields_set})

    def key(self) -> str | None:
        """The key, from the environment.

        Raises:
            InputError: the variable that should hold it is not set.
        """
        return None if self.key_env is None else _from_environment(self.key_env, "key_env")

    def all_headers(self) -> dict[str, str]:
        """The further headers with the values from the environment filled in.

        Raises:
            InputError: a variable that should hold one is not set.
        """
        return {
            name: _from_environment(value[1:], f"headers.{name}") if value.startswith("$") else value
            for name, value in self.headers.items()
        }

    def secrets(self) -> list[str]:
        """What must never be shown, longest first: the key and the values of the headers."""
        found = {self.key() or "", *self.all_headers().values()}
        return sorted((value for value in found if len(value) >= SHORTEST_SECRET), key=len, reverse=True)


class Settings(_Section):
    """The whole file."""

    endpoint: dict[str, Endpoint]


def read_settings() -> Settings:
    """The settings of this folder and environment.

    Raises:
        InputError: naming file and field.
    """
    named = os.environ.get("LABCOAT_CONFIG")
    path = Path(named or FILE)
    given: dict[str, Any] = {}
    if named or path.exists():
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            hint = " ($LABCOAT_CONFIG names it)" if named else ""
            raise InputError(f"{path}: {error.strerror}{hint}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: not TOML: {error}") from None
    endpoints = given.get("endpoint", {})
    if isinstance(endpoints, dict) and isinstance(endpoints.get(BUILT_IN, {}), dict):
        given = given | {"endpoint": endpoints | {BUILT_IN: _built_in() | endpoints.get(BUILT_IN, {})}}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        lines = [f"  {'.'.join(map(str, e['loc']))}: {of_field(e)}" for e in error.errors()]
        source = path if given.keys() - {"endpoint"} or endpoints else "$OPENAI_BASE_URL"
        raise InputError(f"{source}:\n" + "\n".join(lines) + "\n  (docs/models.md lists the fields)") from None


def _built_in() -> dict[str, Any]:
    """The endpoint of the environment; a server of one's own needs no key."""
    url, has_key = os.environ.get("OPENAI_BASE_URL"), bool(os.environ.get("OPENAI_API_KEY"))
    return {"base_url": url or PUBLIC} | ({"key_env": "OPENAI_API_KEY"} if has_key or not url else {})


def _from_environment(variable: str, field: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise InputError(f"the environment variable {variable} ({field}) is not set; `export {variable}=...`")
    if not _fits_a_header(value):
        raise InputError(f"the environment variable {variable} ({field}) holds what no HTTP header can carry")
    return value
