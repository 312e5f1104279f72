"""A private event loop: calls to endpoints run in it, so that each has one deadline whatever it waits for.

A socket's own timeout starts anew with every byte; a server that sends one byte a minute would hold a run for ever.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

T = TypeVar("T")


def run(work: Awaitable[T], seconds: float) -> T:
    """The result of ``work``; it is cancelled after ``seconds``, and when the caller is interrupted.

    Raises:
        TimeoutError: it took longer.
    """
    future = start(asyncio.wait_for(work, seconds))
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def start(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Begin ``work`` and do not wait for it."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="labcoat-models", daemon=True).start()
    return loop
