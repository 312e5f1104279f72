"""What the tests of models share: a stub server, and models that ask it without waiting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from labcoat.models.endpoint import EndpointModel
from labcoat.models.settings import Endpoint
from tests.models.stub_server import Stub


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as server:
        yield server


@pytest.fixture
def waits() -> list[float]:
    """Seconds that were waited for the endpoint."""
    return []


@pytest.fixture
def at(stub: Stub, waits: list[float]) -> Callable[..., EndpointModel]:
    """A model behind the stub; settings are those of its endpoint."""

    def model(name: str = "stub", **settings: Any) -> EndpointModel:
        return EndpointModel(name, "stub", Endpoint(base_url=stub.url, **settings), waits.append)

    return model
