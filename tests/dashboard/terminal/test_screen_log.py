"""While a dashboard has the terminal, nothing else is written there."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from trionet.dashboard.terminal._screen_log import ERRORS_MAX, hold_terminal_logging

logger = logging.getLogger("trionet.client")


class _Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def handlers(*streams: io.StringIO) -> Iterator[None]:
    """The root logger writes to these, and nowhere else."""
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers[:] = [logging.StreamHandler(stream) for stream in streams]
    try:
        yield
        assert {*streams} == {getattr(handler, "stream", None) for handler in root.handlers}
    finally:
        root.handlers[:] = before


def test_errors_are_reported_when_the_screen_is_free_again() -> None:
    screen, file = _Screen(), io.StringIO()
    with handlers(screen, file):
        with hold_terminal_logging():
            logger.warning("no broker")
            logger.error("a fault")
            assert "" == screen.getvalue()
            assert "no broker\na fault\n" == file.getvalue()
        logger.warning("later")

    assert "a fault\nlater\n" == screen.getvalue()
    assert "no broker\na fault\nlater\n" == file.getvalue()


def test_handlers_of_the_package_are_held_as_well() -> None:
    screen, package = _Screen(), logging.getLogger("trionet")
    handler = logging.StreamHandler(screen)
    package.addHandler(handler)
    try:
        with hold_terminal_logging():
            logger.error("a fault")
            assert "" == screen.getvalue()
        assert handler in package.handlers
    finally:
        package.removeHandler(handler)

    assert "a fault\n" == screen.getvalue()


def test_python_has_no_last_resort_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = _Screen()
    monkeypatch.setattr("sys.stderr", screen)
    with handlers(), hold_terminal_logging():
        logger.warning("no broker")
        for number in range(ERRORS_MAX + 1):
            logger.error("fault %d", number)
        assert "" == screen.getvalue()

    assert [f"fault {n}" for n in range(1, ERRORS_MAX + 1)] == screen.getvalue().splitlines()
