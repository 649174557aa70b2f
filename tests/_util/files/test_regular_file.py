"""Reading files whose paths others choose."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from trionet._util.files._regular_file import read_regular_file


def test_a_regular_file_is_read_whole_also_through_links(tmp_path: Path) -> None:
    path, link = tmp_path / "file", tmp_path / "link"
    content = os.urandom(200_000)
    path.write_bytes(content)
    link.symlink_to(path)

    assert content == read_regular_file(path, 200_000)
    assert content == read_regular_file(str(link), 200_000)
    empty = tmp_path / "empty"
    empty.touch()
    assert b"" == read_regular_file(empty, 0)


def test_a_file_above_the_limit_is_refused_with_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(1001))

    with pytest.raises(OSError, match="too large; at most 1000 bytes are allowed"):
        read_regular_file(path, 1000)


def hostile(kind: str, folder: Path) -> str:
    """A path to something that is no regular file."""
    path = folder / "hostile"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as sock:
            sock.bind(str(path))
    elif kind == "directory":
        path.mkdir()
    elif kind == "link to a device":
        path.symlink_to("/dev/zero")
    else:
        return kind
    return str(path)


@pytest.mark.skipif(not os.path.exists("/dev/ptmx"), reason="needs Linux's devices")
@pytest.mark.parametrize(
    "kind",
    [
        "pipe",
        "socket",
        "directory",
        "/dev/zero",
        "/dev/null",
        "/dev/ptmx",
        "/dev/tty",
        "link to a device",
    ],
)
def test_what_is_no_regular_file_is_refused_without_being_opened(kind: str, tmp_path: Path) -> None:
    path = hostile(kind, tmp_path)

    with pytest.raises(OSError, match=r"it is a (pipe|socket|directory|device), not a regular"):
        read_regular_file(path, 1000)


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_file_that_says_it_is_empty_and_is_not_is_read_up_to_the_limit() -> None:
    """All files of /proc have the size 0."""
    assert b"VmRSS" in read_regular_file("/proc/self/status", 100_000)
    with pytest.raises(OSError, match="too large; at most 10 bytes are allowed"):
        read_regular_file("/proc/self/status", 10)


@pytest.mark.parametrize("path", ["", "a\0b", "x" * 100_000, "/there/is/none"])
def test_what_is_no_path_is_an_error_of_the_system(path: str) -> None:
    with pytest.raises(OSError) as caught:
        read_regular_file(path, 1000)
    assert caught.value.strerror


def test_a_pipe_of_the_command_line_is_read_to_its_end_but_not_past_the_limit() -> None:
    for written, bytes_max in ((5, 5), (6, 5)):
        with subprocess.Popen(["head", "-c", str(written), "/dev/zero"], stdout=-1) as writer:
            assert writer.stdout is not None
            path = f"/dev/fd/{writer.stdout.fileno()}"
            if written <= bytes_max:
                assert bytes(5) == read_regular_file(path, bytes_max, takes_pipes=True)
            else:
                with pytest.raises(OSError, match="too large"):
                    read_regular_file(path, bytes_max, takes_pipes=True)
