"""What commands say where something accepts connections and responds to nothing."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from support.command_runs import Run
from trionet.cli.clients import _admin as with_admin

pytestmark = pytest.mark.slow

#: The client notices silence within two seconds.
SECONDS = 2.5
SOON = ["-m", "2.5"]


@pytest.fixture
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield f"127.0.0.1:{listening.getsockname()[1]}"


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(with_admin, "REACH_SECONDS", SECONDS)


VERSIONS = "no response to ApiVersions within 2 s"


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        (("topics", "list"), VERSIONS),
        (
            ("topics", "list", "-X", "security.protocol=SSL"),
            "the TLS handshake did not finish within 2 s",
        ),
        (("produce", "t", *SOON), VERSIONS),
        (("consume", "t", *SOON), VERSIONS),
        (("consume", "^t", *SOON), VERSIONS),
        (("consume", "t", "-G", "g", *SOON), VERSIONS),
    ],
)
def test_they_say_what_is_missing(
    run: Run, silent: str, words: tuple[str, ...], cause: str
) -> None:
    done = run(*words, "-b", silent, stdin="a\n")

    assert (1, "") == (done.status, done.out)
    assert "timed out after 2.5 s: no bootstrap broker could be reached" in done.err
    assert f"({silent}: {cause})" in done.err


def test_a_port_that_accepts_none_is_a_wrong_address(run: Run) -> None:
    done = run("topics", "list", "-b", "127.0.0.1:1")

    assert 1 == done.status
    assert "(127.0.0.1:1: connection refused)" in done.err
