"""Unix sockets by which processes of one user find each other, and nobody else does."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import trio

from support.processes import SAME_TRIONET
from trionet.net._local_socket import (
    FILES_MAX,
    PATH_BYTES_MAX,
    LocalSocket,
    is_local,
    is_own_peer,
    is_served,
    paths_for,
)
from trionet.net.wire._endpoint import Endpoint

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no Unix sockets")

OTHER_UID = 54321
needs_root = pytest.mark.skipif(
    sys.platform == "win32" or os.geteuid() != 0, reason="only root can become another user"
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where sockets come to be, in a runtime folder of the user's own."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path / "trionet"


def endpoint(address: str) -> Endpoint:
    return Endpoint.parse(f"PLAINTEXT://{address}")


def mode(path: str | Path) -> int:
    return stat.S_IMODE(os.lstat(path).st_mode)


def kill(local: LocalSocket) -> None:
    """Leave what a killed process leaves: the file, and no one who listens."""
    local.sock.close()


def test_folder_and_socket_are_the_users_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
            assert str(folder / "kafka-127.0.0.1:9092.sock") == local.path
            assert (0o700, 0o600) == (mode(folder), mode(local.path))
            assert [Path(local.path)] == list(folder.iterdir())
    finally:
        os.umask(before)


def test_it_is_gone_at_the_end(folder: Path) -> None:
    with LocalSocket("kafka", endpoint("127.0.0.1:9092")):
        pass

    assert [] == list(folder.iterdir())


@pytest.mark.parametrize(
    ("served", "asked"),
    [
        ("127.0.0.1:9092", "127.0.0.1"),
        ("127.0.0.1:9092", "localhost"),
        ("localhost:9092", "127.0.0.1"),
        ("[::1]:9092", "::1"),
        ("[::1]:9092", "LOCALHOST"),
        ("0.0.0.0:9092", "127.0.0.1"),
        (":9092", "::1"),
        ("[::]:9092", "::1"),
        ("[::]:9092", "localhost"),
        ("[::]:9092", "127.0.0.1"),
        ("[0:0:0:0:0:0:0:0]:9092", "127.0.0.1"),
        ("[0:0:0:0:0:0:0:1]:9092", "::1"),
        ("127.0.0.1:9092", "::ffff:127.0.0.1"),
    ],
)
def test_a_client_that_knows_the_address_finds_it(folder: Path, served: str, asked: str) -> None:
    with LocalSocket("kafka", endpoint(served)):
        assert any(map(is_served, paths_for("kafka", asked, 9092)))


def test_what_serves_something_else_is_not_taken_for_it(folder: Path) -> None:
    with LocalSocket("kafka", endpoint("127.0.0.1:9092")):
        assert not any(map(is_served, paths_for("jafka", "127.0.0.1", 9092)))
        assert not any(map(is_served, paths_for("kafka", "127.0.0.2", 9092)))
        assert not any(map(is_served, paths_for("kafka", "127.0.0.1", 9093)))
        assert is_tried(folder)


@pytest.mark.parametrize("host", ["kafka.example", "10.0.0.1", "", "::2", "127.0.0.1.example"])
def test_another_machine_has_none(host: str) -> None:
    assert [] == paths_for("kafka", host, 9092)


@pytest.mark.parametrize(
    ("address", "is_reached"),
    [("127.0.0.9:1", True), ("localhost:1", True), ("0.0.0.0:1", True), ("10.1.2.3:1", False)],
)
def test_only_what_loopback_reaches_is_served(address: str, is_reached: bool) -> None:
    assert is_reached == is_local(endpoint(address))


def test_two_servers_of_one_port_on_two_addresses_have_one_each(folder: Path) -> None:
    with (
        LocalSocket("kafka", endpoint("127.0.0.1:9092")) as one,
        LocalSocket("kafka", endpoint("127.0.0.2:9092")) as other,
    ):
        assert one.path != other.path


def test_a_killed_servers_socket_is_replaced(folder: Path) -> None:
    kill(LocalSocket("kafka", endpoint("127.0.0.1:9092")))

    with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
        assert is_served(local.path)


def test_whoever_has_bound_the_port_last_owns_the_name(folder: Path) -> None:
    """As after a restart, while the server of before still sends its last responses."""
    stopping = LocalSocket("kafka", endpoint("127.0.0.1:9092"))
    with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
        stopping.close()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(local.path)
            accepted, _ = local.sock.accept()
            accepted.close()

        assert [Path(local.path)] == list(folder.iterdir())


def test_two_servers_that_share_a_port_are_told_apart(folder: Path) -> None:
    with (
        LocalSocket("kafka", endpoint("0.0.0.0:9092")) as four,
        LocalSocket("kafka", endpoint("[::1]:9092")) as six,
    ):
        found = {
            host: next(filter(is_served, paths_for("kafka", host, 9092)))
            for host in ("127.0.0.1", "::1")
        }

    assert {"127.0.0.1": four.path, "::1": six.path} == found


def test_at_its_end_a_server_leaves_the_socket_of_its_successor(folder: Path) -> None:
    first = LocalSocket("kafka", endpoint("127.0.0.1:9092"))
    os.unlink(first.path)
    with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as second:
        first.close()

        assert is_served(second.path)


def test_sockets_of_killed_servers_do_not_pile_up(folder: Path) -> None:
    with LocalSocket("kafka", endpoint("127.0.0.1:1")) as running:
        for port in range(2, FILES_MAX + 2):
            kill(LocalSocket("kafka", endpoint(f"127.0.0.1:{port}")))
        with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
            left = {str(path) for path in folder.iterdir()}

    assert {running.path, local.path} == left


def ended_process() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_nor_do_those_that_were_killed_before_they_had_their_name(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    running = folder / f"kafka-127.0.0.1:1.sock.{os.getpid()}"
    running.touch()
    gone = ended_process()
    for port in range(FILES_MAX):
        (folder / f"kafka-127.0.0.1:{port}.sock.{gone}").touch()
    with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
        assert {running, Path(local.path)} == set(folder.iterdir())


def test_a_path_that_is_too_long_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = tmp_path / ("x" * PATH_BYTES_MAX)
    runtime.mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime))

    with pytest.raises(OSError, match="set XDG_RUNTIME_DIR to a folder") as raised:
        LocalSocket("kafka", endpoint("127.0.0.1:9092"))

    path = f"{runtime}/trionet/kafka-127.0.0.1:9092.sock"
    assert raised.value.filename.startswith(path)
    assert path not in paths_for("kafka", "127.0.0.1", 9092)


# What is not to be trusted.


def test_a_link_in_place_of_the_folder_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    folder.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(OSError, match="not a folder, and links are not followed"):
        LocalSocket("kafka", endpoint("127.0.0.1:9092"))

    assert [] == list((tmp_path / "elsewhere").iterdir())
    assert not is_tried(folder)


def is_tried(folder: Path) -> bool:
    """Whether a client looks there: what is in another user's folder may be links to ours."""
    return any(Path(path).parent == folder for path in paths_for("kafka", "127.0.0.1", 9092))


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_is_no_socket_is_left_alone(folder: Path, tmp_path: Path, kind: str) -> None:
    folder.mkdir(mode=0o700)
    path, valuable = folder / "kafka-127.0.0.1:9092.sock", tmp_path / "valuable"
    valuable.write_text("kept")
    if kind == "link":
        path.symlink_to(valuable)
    else:
        path.write_text("kept")

    with pytest.raises(OSError, match="not a socket, and links are not followed"):
        LocalSocket("kafka", endpoint("127.0.0.1:9092"))

    assert "kept" == path.read_text() == valuable.read_text()


def test_a_folder_that_others_may_enter_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o755)

    with pytest.raises(PermissionError, match="the folder has mode 755, not 700"):
        LocalSocket("kafka", endpoint("127.0.0.1:9092"))
    assert not is_tried(folder)


@needs_root
def test_another_users_folder_is_refused(folder: Path) -> None:
    folder.mkdir(mode=0o700)
    os.chown(folder, OTHER_UID, OTHER_UID)

    with pytest.raises(PermissionError, match=f"the folder belongs to user {OTHER_UID}"):
        LocalSocket("kafka", endpoint("127.0.0.1:9092"))
    assert not is_tried(folder)


@needs_root
def test_another_users_runtime_folder_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after `su`, which keeps the environment."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    os.chown(tmp_path, OTHER_UID, OTHER_UID)

    assert not any(path.startswith(str(tmp_path)) for path in paths_for("kafka", "127.0.0.1", 1))


def connect_as_other(path: str) -> str:
    """What another user sees who connects: the error, or what was read."""
    program = (
        "import os, socket, sys\n"
        f"os.setgroups([]); os.setgid({OTHER_UID}); os.setuid({OTHER_UID})\n"
        "sock = socket.socket(socket.AF_UNIX)\n"
        "try:\n"
        "    sock.connect(sys.argv[1])\n"
        "    print(sock.recv(1))\n"
        "except OSError as error:\n"
        "    print(type(error).__name__)\n"
    )
    command = [sys.executable, "-c", program, path]
    done = subprocess.run(command, env=SAME_TRIONET, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@needs_root
async def test_another_user_cannot_connect(folder: Path) -> None:
    with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
        seen = await trio.to_thread.run_sync(connect_as_other, local.path)

    assert "PermissionError" == seen


@needs_root
async def test_another_user_is_noticed_even_where_all_doors_are_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with tempfile.TemporaryDirectory() as runtime:
        monkeypatch.setenv("XDG_RUNTIME_DIR", runtime)
        with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
            for each in (local.path, os.path.dirname(local.path), runtime):
                os.chmod(each, 0o777)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(refuse_one, trio.socket.from_stdlib_socket(local.sock))
                seen = await trio.to_thread.run_sync(connect_as_other, local.path)

    assert "b''" == seen


async def refuse_one(listening: trio.socket.SocketType) -> None:
    accepted, _ = await listening.accept()
    with accepted:
        assert not is_own_peer(accepted)


async def test_both_sides_know_the_user_of_the_other(folder: Path) -> None:
    with LocalSocket("kafka", endpoint("127.0.0.1:9092")) as local:
        stream = await trio.open_unix_socket(local.path)
        accepted, _ = local.sock.accept()
        async with stream:
            with trio.socket.from_stdlib_socket(accepted) as server:
                assert is_own_peer(stream.socket)
                assert is_own_peer(server)


def test_a_tcp_socket_tells_no_user() -> None:
    with trio.socket.from_stdlib_socket(socket.socket()) as sock:
        assert not is_own_peer(sock)
