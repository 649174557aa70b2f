"""Fixtures of a foreign suite that are given, whatever the suite's own would do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest


class Given:
    """Values of fixtures by name, made when they are wanted.

    A fixture of a plugin's own would not win over those of the suite's `conftest.py`.
    """

    def __init__(self, values: Mapping[str, Callable[[], Any]]) -> None:
        self._values = values

    @pytest.hookimpl(tryfirst=True)
    def pytest_fixture_setup(
        self, fixturedef: pytest.FixtureDef[Any], request: Any
    ) -> object | None:
        make = self._values.get(fixturedef.argname)
        if make is None:
            return None
        fixturedef.cached_result = (make(), fixturedef.cache_key(request), None)
        return True  # anything but None ends the search for somebody who sets it up
