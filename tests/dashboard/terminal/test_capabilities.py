from __future__ import annotations

import io

import pytest

from trionet.dashboard.terminal._capabilities import is_interactive


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def sit_down(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a fixture: pytest puts its own streams in place before each test."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())


def test_a_terminal_is_interactive(monkeypatch: pytest.MonkeyPatch) -> None:
    sit_down(monkeypatch)

    assert is_interactive()


@pytest.mark.parametrize("name", ["sys.stdin", "sys.stdout"])
def test_a_pipe_or_nothing_is_no_terminal(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    sit_down(monkeypatch)
    monkeypatch.setenv("FORCE_COLOR", "1")
    for stream in (io.StringIO(), None):
        monkeypatch.setattr(name, stream)
        assert not is_interactive()


@pytest.mark.parametrize("term", ["dumb", ""])
def test_nor_is_one_that_can_do_nothing(monkeypatch: pytest.MonkeyPatch, term: str) -> None:
    sit_down(monkeypatch)
    monkeypatch.setenv("TERM", term)

    assert not is_interactive()
