"""One broker with a crowd of clients for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.crowded_broker import crowded_broker


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """What tells a dashboard of a broker with a crowd: its address, and its metrics with token."""
    with crowded_broker(tmp_path_factory.mktemp("crowd")) as (arguments, _):
        yield arguments
