"""Why a command has had no response, as far as its client knows.

What commands tell of brokers that do not let them in: once.

What commands say where something accepts connections and responds to nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trustme

import trionet
from support.command_runs import Run
from support.ports import free_ports
from trionet.cli.clients import _admin as with_admin
from trionet.cli.clients._first_response import timeout_error
from trionet.client.network import _open_client


@attrs.frozen
class Waiting:
    """A client that has waited."""

    responses: int = 0
    problem: str = ""

    def statistics(self) -> Any:
        return {"response-total": self.responses}

    def connection_problem(self) -> str:
        return self.problem

    async def until_connected(self) -> None:
        await trio.lowlevel.checkpoint()


def said_of(client: Waiting) -> str:
    return str(timeout_error("b:1", 2, client, option="-m"))


def test_what_the_client_knows_is_said() -> None:
    for responses in (0, 3):
        problem = "broker 1 cannot be reached"
        expected = f"timed out after 2 s: {problem}; raise the limit with -m"

        assert expected == said_of(Waiting(responses, problem))


def test_silence_is_said_before_the_client_has_noticed_it() -> None:
    assert "b:1 has not responded" in said_of(Waiting())


def test_a_broker_that_has_responded_hangs() -> None:
    assert "b:1 responded earlier but no longer does" in said_of(Waiting(responses=3))


pytestmark = pytest.mark.slow

COMMANDS = [("topics", "list"), ("consume", "t"), ("produce", "t"), ("dashboard", "--once")]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_wrong_password_is_reported_once(run: Run, words: tuple[str, ...]) -> None:
    # The dashboard would read all that it prints from the local socket, where no password is asked.
    with trionet.testing.broker(sasl="PLAIN", metrics_local_enable=False) as broker:
        settings = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN"]
        settings += ["sasl.username=tester", "sasl.password=wrong"]
        options = [word for setting in settings for word in ("-X", setting)]

        done = run(*words, "-b", broker.bootstrap_servers, *options)

    assert (1, "") == (done.status, done.out)
    assert 1 == done.err.count("Invalid username or password")


def test_an_authority_that_signed_nothing_is_reported_once(run: Run, tmp_path: Path) -> None:
    another = tmp_path / "another.pem"
    trustme.CA().cert_pem.write_to_path(another)
    with trionet.testing.broker(tls=True) as broker:
        settings = ["security.protocol=SSL", "ssl.truststore.type=PEM"]
        settings += [f"ssl.truststore.location={another}"]
        options = [word for setting in settings for word in ("-X", setting)]

        done = run("topics", "list", "-b", broker.bootstrap_servers, *options)

    assert (1, "") == (done.status, done.out)
    assert 1 == done.err.count("the peer's certificate was rejected")


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
def test_they_say_what_is_missing_once(
    run: Run, silent: str, words: tuple[str, ...], cause: str
) -> None:
    done = run(*words, "-b", silent, stdin="a\n")

    assert (1, "") == (done.status, done.out)
    assert f"could not connect to {silent} (bootstrap): {cause}\n" in done.err
    assert "timed out after 2.5 s: no bootstrap broker could be reached; raise" in done.err
    assert 1 == done.err.count(cause)


WAIT = "-X default.api.timeout.ms=60000"


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("topics", "list"), WAIT),
        (("topics", "create", "t"), WAIT),
        (("groups", "list"), WAIT),
        (("groups", "describe", "g", "--watch"), WAIT),
        (("configs", "describe", "topic", "t"), WAIT),
        (("cluster", "describe"), WAIT),
        (("transactions", "list"), WAIT),
        (("produce", "t"), "-m 60"),
        (("produce", "t", "--transactional-id", "x"), "-m 60"),
        (("consume", "t"), "-m 60"),
        (("consume", "t", "-e"), "-m 60"),
        (("consume", "^t"), "-m 60"),
        (("consume", "t", "-G", "g"), "-m 60"),
        (("bench", "produce", "t"), ""),
        (("bench", "consume", "t"), ""),
    ],
    ids=" ".join,
)
def test_a_port_where_nothing_listens_is_named_as_typed_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], advice: str
) -> None:
    monkeypatch.setattr(_open_client, "REFUSED_SECONDS", 0.3)

    done = run(*words, "-b", "localhost:1", stdin="a\n")

    [line] = done.err.splitlines()
    assert (1, "") == (done.status, done.out)
    assert line.startswith(f"trionet {words[0]}")
    assert ": nothing listens at localhost:1 (connection refused); gave up after 0.3 s (-b" in line
    assert line.endswith(f", {advice} waits longer)" if advice else "(-b sets the address)")


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (("topics", "list"), WAIT),
        (("groups", "list"), WAIT),
        (("produce", "t"), "-m 60"),
        (("consume", "t"), "-m 60"),
        (("consume", "t", "-G", "g"), "-m 60"),
        (("bench", "consume", "t"), ""),
    ],
    ids=" ".join,
)
def test_an_advertised_address_where_nothing_listens_is_named_in_one_line(
    run: Run, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], advice: str
) -> None:
    monkeypatch.setattr(_open_client, "REFUSED_SECONDS", 0.3)
    [port] = free_ports(1)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:{port}",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:1",
    }

    with trionet.testing.broker(settings, topics=["t"]):
        done = run(*words, "-b", f"127.0.0.1:{port}", stdin="a\n")

    [line] = done.err.splitlines()
    assert (1, "") == (done.status, done.out)
    assert (
        f": 127.0.0.1:{port} responded, and says that the broker is at 127.0.0.1:1, where nothing"
        " listens (connection refused): set advertised.listeners; gave up after 0.3 s"
    ) in line
    assert line.endswith(f" ({advice} waits longer)" if advice else "after 0.3 s")


def test_a_name_that_does_not_resolve_is_named_in_one_line(run: Run) -> None:
    done = run("topics", "list", "-b", "kafka.invalid")

    [line] = done.err.splitlines()
    assert 1 == done.status
    assert "no bootstrap broker could be reached (kafka.invalid:9092: name does not res" in line


def test_a_limit_in_a_file_is_no_wish_to_wait_where_nothing_listens(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_open_client, "REFUSED_SECONDS", 0.3)
    file = tmp_path / "client.properties"
    file.write_text("default.api.timeout.ms=60000\n")

    done = run("topics", "list", "-b", "127.0.0.1:1", "-F", str(file))

    assert "nothing listens at 127.0.0.1:1" in done.err


def test_a_limit_on_the_command_line_is_one(run: Run) -> None:
    limit = ["-X", "default.api.timeout.ms=300"]

    done = run("topics", "list", "-b", "127.0.0.1:1", *limit)

    assert "the call did not succeed within default.api.timeout.ms (0.3 s)" in done.err
