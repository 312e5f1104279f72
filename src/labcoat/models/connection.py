"""The one file that imports the ``openai`` SDK: a request goes out, status and body come back.

The SDK gives us addresses, authentication and pooling; it does not retry, so every attempt is counted by us.
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Awaitable
from typing import Any

import openai

from labcoat.models import loop
from labcoat.models.answer import Answer, CutOff, TooLong, Unreachable
from labcoat.models.patience import retry_after
from labcoat.models.settings import Endpoint

MOST_BYTES = 4 << 20
"""Of an answer; the longest replies of today's models have a tenth."""
CONNECT = 20.0


class _Bounded(openai.DefaultAsyncHttpxClient):
    """Reads every body itself, error pages too, and not beyond the bound."""

    async def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
        response = await super().send(request, stream=True, **options)
        body = bytearray()
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    if response.is_error:
                        break  # what it has to say stands at the beginning
                    raise TooLong(f"more than {MOST_BYTES >> 20} MiB", len(body))
        except CutOff:
            raise
        except Exception as error:
            raise CutOff(f"broke off after {len(body)} bytes ({type(error).__name__})", len(body)) from None
        finally:
            await response.aclose()
        coded = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in coded]
        return type(response)(response.status_code, headers=headers, content=bytes(body), request=request)


class Connection:
    """Requests to one endpoint, over connections that are kept open until it is not used any more."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Nothing is sent yet.

        Raises:
            InputError: an environment variable that the endpoint names is not set.
        """
        key = endpoint.key()
        # The SDK would take further headers from the environment, and send them to whatever address.
        headers: dict[str, Any] = dict.fromkeys(["OpenAI-Organization", "OpenAI-Project", *_custom()], openai.Omit())
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        self._per_request: Any = {"Authorization": openai.Omit()} if key is None else None
        self._client = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=endpoint.base_url,
            default_headers=headers | endpoint.all_headers(),
            max_retries=0,
            timeout=openai.Timeout(endpoint.timeout, connect=min(CONNECT, endpoint.timeout)),
            # A redirect would take the further headers along to another host.
            http_client=_Bounded(follow_redirects=False),
        )
        self._timeout = endpoint.timeout
        weakref.finalize(self, _close, self._client).atexit = False

    def chat(self, body: dict[str, Any]) -> Answer:
        """Ask for a completion.

        Raises:
            Unreachable: nobody answered.
            CutOff: the answer cannot be read.
        """
        create = self._client.chat.completions.with_raw_response.create
        model, messages = body["model"], body["messages"]
        more = {name: value for name, value in body.items() if name not in ("model", "messages")}
        return self._sent(
            create(model=model, messages=messages, extra_body=more, extra_headers=self._per_request), self._timeout
        )

    def models(self, seconds: float) -> Answer:
        """Ask which models there are; raises as :meth:`chat` does."""
        return self._sent(
            self._client.models.with_raw_response.list(extra_headers=self._per_request), min(seconds, self._timeout)
        )

    def _sent(self, work: Awaitable[Any], seconds: float) -> Answer:
        try:
            response = loop.run(work, seconds).http_response
        except openai.APIStatusError as error:
            response = error.response
        except (TimeoutError, openai.APITimeoutError) as error:
            if _never_connected(error):
                raise Unreachable(f"no connection within {CONNECT:g} s") from None
            raise CutOff(f"no whole answer within {seconds:g} s") from None
        except openai.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, CutOff):
                raise cause from None
            raise Unreachable(f"{type(cause).__name__}: {cause}") from None
        return Answer(response.status_code, response.content, retry_after(response.headers))


def _never_connected(error: Exception) -> bool:
    return type(error.__cause__).__name__ in ("ConnectTimeout", "PoolTimeout")


def _custom() -> list[str]:
    """Names of the headers that the SDK would add."""
    lines = os.environ.get("OPENAI_CUSTOM_HEADERS", "").splitlines()
    names = [line.partition(":")[0].strip() for line in lines if ":" in line]
    return [name for name in names if name.lower() != "authorization"]


def _close(client: openai.AsyncOpenAI) -> None:
    loop.start(client.close())
