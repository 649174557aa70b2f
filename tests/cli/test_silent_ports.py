"""What commands tell where something takes connections and answers nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from support.command_runs import Run
from trionet.cli import with_admin

pytestmark = pytest.mark.slow

SECONDS = 1.0
SOON = ["-m", "1"]


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_admin, "REACH_SECONDS", SECONDS)


@pytest.mark.parametrize(
    "words",
    [
        ("topics", "list"),
        ("topics", "list", "-X", "security.protocol=SSL"),
        ("produce", "t", *SOON),
        ("consume", "t", *SOON),
        ("consume", "^t", *SOON),
        ("consume", "t", "-G", "g", *SOON),
    ],
    ids=" ".join,
)
def test_they_say_what_that_may_be(run: Run, silent: str, words: tuple[str, ...]) -> None:
    done = run(*words, "-b", silent, stdin="a\n")

    assert (1, "") == (done.status, done.out)
    assert f"{silent} takes connections, and has answered nothing within 1 seconds" in done.err
    assert "security.protocol" in done.err


def test_a_port_that_takes_none_is_a_wrong_address(run: Run) -> None:
    done = run("topics", "list", "-b", "127.0.0.1:1")

    assert 1 == done.status
    assert "no broker was reached at 127.0.0.1:1 within 1 seconds" in done.err
