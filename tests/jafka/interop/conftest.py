"""The real Jafka, version 3.0.6: its server beside ours, and its Java clients against both."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cache import Unavailable
from support.jafka import jafka_class_path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Everything here is `interop`, and too long for every change."""
    here = [item for item in items if Path(__file__).parent in item.path.parents]
    if "interop" not in config.getoption("markexpr"):
        config.hook.pytest_deselected(items=here)
        items[:] = [item for item in items if item not in here]
    for item in here:
        item.add_marker(pytest.mark.interop)
        item.add_marker(pytest.mark.timeout(600))  # it may have to wait for a download


@pytest.fixture(scope="session", autouse=True)
def _jafka() -> None:
    """Skip without Jafka, also what runs against trionet alone: it is to be compared."""
    try:
        jafka_class_path()
    except Unavailable as reason:
        pytest.skip(str(reason))
