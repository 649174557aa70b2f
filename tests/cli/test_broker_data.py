"""``trionet broker --add-scram``: users of SCRAM, whose passwords are on no command line.

``trionet broker --reset-altered-settings`` and those beside it: a way back for a broker that nobody
reaches.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import trio

from support.client import connect
from support.config_calls import BROKER, SET, alter, put, settings_of
from trionet import open_broker
from trionet.broker.log import FolderDirectory
from trionet.broker.security._scram_credentials import ScramCredentials
from trionet.broker.storage._database import DATABASE_NAME, open_database
from trionet.cli.main import main
from trionet.net.sasl._scram import HASHES


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return tmp_path / "data"


def add(data: Path, name: str, *options: str) -> int:
    return main(["broker", "--data", str(data), "--add-scram", name, *options])


async def users(data: Path) -> dict[str, list[str]]:
    async with open_database(str(data / DATABASE_NAME)) as database:
        found = (await ScramCredentials.load(database)).by_mechanism
        return {mechanism: list(users) for mechanism, users in found.items()}


def test_the_password_comes_from_standard_input(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))

    assert 0 == add(data, "alice")

    printed = capsys.readouterr().out
    assert "trionet broker: alice can now log in with SCRAM-SHA-256, SCRAM-SHA-512\n" == printed
    assert {key: ["alice"] for key in HASHES} == trio.run(users, data)


def test_the_password_comes_from_a_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_text("secret\n")

    assert 0 == add(data, "alice", "--password-file", str(file))


def test_a_terminal_is_asked_without_showing_it(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    def answer(prompt: str) -> str:
        asked.append(prompt)
        return "secret"

    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("getpass.getpass", answer)

    assert 0 == add(data, "alice")
    assert ["password of alice: "] == asked


@pytest.mark.parametrize(
    ("name", "password", "message"),
    [
        ("alice", "", "the password of 'alice' must not be empty"),
        ("", "secret", "invalid user name"),
    ],
)
def test_what_cannot_be_is_refused(
    data: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    password: str,
    message: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(password))

    assert 2 == add(data, name)
    assert message in capsys.readouterr().err


def test_it_needs_a_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["broker", "--memory", "--add-scram", "alice"])
    assert "--add-scram requires the broker's data directory" in capsys.readouterr().err


def test_a_folder_in_use_or_of_another_user_is_left_alone(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("secret\n"))
    data.mkdir()
    lock = FolderDirectory(str(data)).lock()
    assert 2 == add(data, "alice")
    assert "in use by another broker" in capsys.readouterr().err
    lock.release()

    (data / "topic-0").mkdir()
    assert 2 == add(data, "alice")
    assert "it belongs to another broker" in capsys.readouterr().err
    assert not (data / DATABASE_NAME).exists()


def test_a_password_file_that_cannot_be_read_is_reported(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 1 == add(data, "alice", "--password-file", str(data / "none"))
    assert "No such file" in capsys.readouterr().err

    assert 1 == add(data, "alice", "--password-file", "/dev/zero")
    assert "it is a device" in capsys.readouterr().err

    latin = tmp_path / "latin"
    latin.write_bytes("süß\n".encode("iso-8859-1"))
    assert 2 == add(data, "alice", "--password-file", str(latin))
    assert "trionet broker: the password of 'alice' is not valid UTF-8\n" == capsys.readouterr().err


def test_a_password_file_is_for_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["broker", "--password-file", "password"])
    assert "--password-file requires --add-scram" in capsys.readouterr().err


RESET = "--reset-altered-settings"
DESCRIBE = "--describe-altered-settings"
DELETE = "--delete-altered-setting"

LOCK = "max.connections.per.ip.overrides=127.0.0.1:0"


async def let_nobody_in(data: Path) -> None:
    """As any client can."""
    async with (
        open_broker(log_dir=str(data)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await put(client, BROKER, "", message_max_bytes=5)
        await put(client, BROKER, "1", message_max_bytes=6, custom="hush")
        key, _, value = LOCK.partition("=")
        assert (0, "") == await alter(client, BROKER, "1", (key, SET, value))


async def is_served(data: Path) -> bool:
    """Whether a client of the started broker gets a response."""
    async with open_broker(log_dir=str(data)) as broker:
        try:
            async with connect(broker.bootstrap_servers) as client:
                await settings_of(client, BROKER, "1")
        except (trio.BrokenResourceError, EOFError, OSError):
            return False
    return True


def test_what_was_altered_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trio.run(let_nobody_in, tmp_path)

    for _ in range(2):
        assert 0 == main(["broker", "--data", str(tmp_path), DESCRIBE])
        assert (
            "all brokers: message.max.bytes=5\n"
            "broker 1: custom=[hidden]\n"
            f"broker 1: {LOCK}\n"
            "broker 1: message.max.bytes=6\n"
        ) == capsys.readouterr().out

    assert 0 == main(["broker", "--data", str(tmp_path), RESET])
    capsys.readouterr()
    assert 0 == main(["broker", "--data", str(tmp_path), DESCRIBE])
    assert ("", "trionet broker: no altered settings\n") == capsys.readouterr()


def test_what_the_encoding_of_the_output_lacks_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def use_any_key() -> None:
        async with (
            open_broker(log_dir=str(tmp_path)) as broker,
            connect(broker.bootstrap_servers) as client,
        ):
            assert (0, "") == await alter(client, BROKER, "1", ("\u20ac", SET, "hush"))

    trio.run(use_any_key)
    for option, line in (
        (DESCRIBE, b"broker 1: \\u20ac=[hidden]\n"),
        (RESET, b"trionet broker: reset: broker 1: \\u20ac=[hidden]\n"),
    ):
        written = io.BytesIO()
        out = io.TextIOWrapper(written, "iso-8859-1")
        monkeypatch.setattr("sys.stdout", out)

        assert 0 == main(["broker", "--data", str(tmp_path), option])

        assert line == written.getvalue()


def test_one_setting_is_deleted_and_lets_clients_in_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    trio.run(let_nobody_in, tmp_path)
    assert not trio.run(is_served, tmp_path)
    key = LOCK.partition("=")[0]
    way_out = f"trionet broker --data DIR {DELETE} {key}"
    assert f"{LOCK} the broker accepts no connection from 127.0.0.1" in caplog.text
    assert way_out in caplog.text

    assert 0 == main([*way_out.replace("DIR", str(tmp_path)).split()[1:]])

    assert f"trionet broker: reset: broker 1: {LOCK}\n" == capsys.readouterr().out
    assert trio.run(is_served, tmp_path)
    assert 0 == main(["broker", "--data", str(tmp_path), DELETE, "message.max.bytes"])
    assert (
        "trionet broker: reset: all brokers: message.max.bytes=5\n"
        "trionet broker: reset: broker 1: message.max.bytes=6\n"
    ) == capsys.readouterr().out
    assert 2 == main(["broker", "--data", str(tmp_path), DELETE, key])
    assert f"{key} is not an altered setting in {tmp_path}; altered are: custom\n" in (
        capsys.readouterr().err
    )


def test_what_was_altered_is_forgotten_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.run(let_nobody_in, tmp_path)

    assert 0 == main(["broker", "--data", str(tmp_path), RESET])
    assert f"trionet broker: reset: broker 1: {LOCK}\n" in capsys.readouterr().out

    assert 0 == main(["broker", "--data", str(tmp_path), RESET])
    assert "trionet broker: no altered settings to reset\n" == capsys.readouterr().out

    trio.run(let_nobody_in, tmp_path)  # somebody can connect again


@pytest.mark.parametrize(
    "options", [[RESET], [DESCRIBE], [DELETE, "a.key"]], ids=lambda each: each[0]
)
def test_they_need_the_folder_of_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    assert 2 == main(["broker", "--memory", *options])
    assert f"{options[0]} requires the broker's data directory" in capsys.readouterr().err

    assert 2 == main(["broker", "--data", str(tmp_path), *options])
    assert "there are no altered settings" in capsys.readouterr().err

    assert 2 == main(["broker", "--dashboard", *options])
    assert f"--dashboard cannot be combined with {options[0]}" in capsys.readouterr().err
