"""Servers that the tests of a module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.llm.scripted_server import Server


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server()
    yield server
    assert server.stop() == "stopped\n"


@pytest.fixture(scope="module")
def slow() -> Iterator[Server]:
    """2 ms for each token, 2 conversations, and 8 requests that wait."""
    server = Server(2000, 2, 8)
    yield server
    assert server.stop() == "stopped\n"
