from __future__ import annotations

import errno
import gc
import os
import stat
import subprocess
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.small_disk import small_disk
from trionet._util.files._descriptors import lock_descriptor
from trionet._util.files._log_file import SeekingLogFile, log_file
from trionet.broker.log import Directory, FolderDirectory, LogFile, MemoryDirectory
from trionet.broker.log.files._memory_directory import unlinked_file
from trionet.errors import ConfigError

posix = pytest.mark.skipif(os.name == "nt", reason="Windows has no file modes")


def test_created_file_is_empty_and_writable_at_any_position(directory: Directory) -> None:
    file = directory.create("a.log")
    written = file.write_at(0, [b"one", memoryview(b"two")])
    file.write_at(3, [b"TWO"])

    assert 6 == written
    assert b"oneTWO" == file.read_at(0, 100)
    assert b"eT" == file.read_at(2, 2)
    assert b"" == file.read_at(6, 10)
    assert 6 == file.size() == directory.size("a.log")


def test_creating_a_file_again_empties_it(directory: Directory) -> None:
    directory.create("a.log").write_at(0, [b"old"])

    assert 0 == directory.create("a.log").size()


def test_opening_a_missing_file_does_not_create_it(directory: Directory) -> None:
    with pytest.raises(FileNotFoundError):
        directory.open("a.log")

    assert [] == directory.names()


def test_opened_file_has_what_was_written_under_its_name(directory: Directory) -> None:
    directory.write("a", 0, b"content")

    assert b"content" == directory.open("a").read_at(0, 100)


def test_removed_file_stays_readable_while_it_is_held(directory: Directory) -> None:
    file = directory.create("a.log")
    file.write_at(0, [b"kept"])
    directory.remove("a.log")

    assert [] == directory.names()
    assert b"kept" == file.read_at(0, 4)


def test_descriptor_closes_with_the_last_reference(directory: Directory) -> None:
    file = directory.create("a.log")
    directory.remove("a.log")
    descriptor, gone = file.fileno(), weakref.ref(file)
    del file
    gc.collect()

    assert gone() is None
    with pytest.raises(OSError):
        os.fstat(descriptor)


def test_descriptors_work_with_sendfile(directory: Directory, tmp_path: Path) -> None:
    file = directory.create("a.log")
    file.write_at(0, [b"0123456789"])
    out = os.open(tmp_path / "out", os.O_RDWR | os.O_CREAT)
    try:
        sent = os.sendfile(out, file.fileno(), 2, 5)
        got = os.pread(out, 100, 0)
    finally:
        os.close(out)

    assert (5, b"23456") == (sent, got)


def test_truncate_cuts_open_and_closed_files(directory: Directory) -> None:
    file = directory.create("a.log")
    file.write_at(0, [b"0123456789"])
    file.truncate(6)
    directory.truncate("a.log", 4)
    directory.write("b", 0, b"0123456789")
    directory.truncate("b", 3)

    assert b"0123" == directory.read("a.log")
    assert b"012" == directory.read("b")


def test_read_gives_a_part_of_a_file(directory: Directory) -> None:
    directory.write("a", 0, b"0123456789")

    assert b"0123456789" == directory.read("a")
    assert b"789" == directory.read("a", 7)
    assert b"34" == directory.read("a", 3, 2)


def test_write_fills_a_gap_with_zeros(directory: Directory) -> None:
    directory.write("a", 3, b"x")
    directory.write("a", 1, b"yz")

    assert b"\0yzx" == directory.read("a")


def test_replace_gives_a_new_content_and_leaves_no_draft(directory: Directory) -> None:
    directory.write("a", 0, b"a long old content")
    directory.replace("a", b"new")

    assert b"new" == directory.read("a")
    assert ["a"] == directory.names()


def test_files_that_take_turns_have_the_new_content(directory: Directory) -> None:
    for content in (b"first", b"a much longer second", b"third", b"4"):
        directory.replace_in_turn("a", content, 100)

        assert content == directory.read("a")


def test_two_files_take_turns_so_that_no_space_is_given_away(folder: FolderDirectory) -> None:
    path = Path(folder.path)
    folder.replace_in_turn("a", b"0", 100)
    files = {(path / name).stat().st_ino for name in folder.names()}
    for number in range(1, 5):
        folder.replace_in_turn("a", b"%d" % number * number, 100)

        assert ["a", "a.tmp"] == folder.names()
        assert files == {(path / name).stat().st_ino for name in folder.names()}
        assert number + 100 == folder.size("a.tmp")


@pytest.mark.parametrize("kind", ["tmpfs", "ext4"])
def test_a_full_disk_has_room_for_a_file_in_its_turn(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever another file takes between any two steps."""
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", 4_000_000, kind) as disk:
        folder = FolderDirectory(tmp_path / "disk")
        folder.replace_in_turn("a", b"0", 100)
        folder.replace_in_turn("a", b"1", 100)
        disk.fill()
        for name in ("replace", "link", "unlink", "ftruncate"):
            monkeypatch.setattr(os, name, followed_by(getattr(os, name), disk.fill))
        for number in range(2, 10):
            folder.replace_in_turn("a", b"%d" % number * 100, 100)

            assert b"%d" % number * 100 == folder.read("a")


def followed_by(real: Callable[..., None], then: Callable[[], None]) -> Callable[..., None]:
    def called(*args: Any) -> None:
        real(*args)
        then()

    return called


@pytest.mark.parametrize("step", ["link", "replace", "fsync"])
def test_a_turn_that_was_cut_short_is_ended_by_the_next(
    step: str, folder: FolderDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by a kill after any of its steps."""
    for content in (b"0", b"1"):
        folder.replace_in_turn("a", content, 100)
    path, left = Path(folder.path), 0
    while True:
        with monkeypatch.context() as patched:
            patched.setattr(os, step, killing(getattr(os, step), left))
            try:
                folder.replace_in_turn("a", b"new", 100)
            except Killed:
                pass
            else:
                break
        inode, content = (path / "a").stat().st_ino, folder.read("a")
        assert content in {b"1", b"new"}
        folder.replace_in_turn("a", b"newer", 100)
        assert b"newer" == folder.read("a")
        assert inode != (path / "a").stat().st_ino
        assert ["a", "a.tmp"] == folder.names()
        folder.replace_in_turn("a", b"1", 100)
        left += 1

    assert left


class Killed(BaseException):
    """The process is gone."""


def killing(real: Callable[..., None], left: int) -> Callable[..., None]:
    """A function after whose call the process is killed, once it was called so often."""
    calls = 0

    def called(*args: Any) -> None:
        nonlocal calls
        real(*args)
        calls += 1
        if calls > left:
            raise Killed

    return called


def test_a_backup_of_second_names_keeps_its_content(
    folder: FolderDirectory, tmp_path: Path
) -> None:
    folder.replace_in_turn("a", b"0", 100)
    os.link(Path(folder.path) / "a", tmp_path / "backup")
    for content in (b"1", b"2", b"3"):
        folder.replace_in_turn("a", content, 100)

    assert b"0" == (tmp_path / "backup").read_bytes()


def test_where_files_have_one_name_each_the_space_is_taken_anew(
    folder: FolderDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    for content in (b"1", b"2", b"3"):
        folder.replace_in_turn("a", content, 100)

    assert b"3" == folder.read("a")
    assert 101 == folder.size("a.tmp")


def test_renamed_file_replaces_another_and_stays_open(directory: Directory) -> None:
    file = directory.create("new")
    file.write_at(0, [b"new"])
    directory.write("old", 0, b"a long old content")
    before = directory.open("old")
    directory.rename("new", "old")

    assert ["old"] == directory.names()
    assert (b"new", b"a long") == (directory.read("old"), before.read_at(0, 6))
    file.write_at(3, [b"er"])
    assert b"newer" == directory.read("old")
    with pytest.raises(FileNotFoundError):
        directory.rename("new", "old")


def test_removing_a_missing_file_is_no_error(directory: Directory) -> None:
    directory.remove("missing")

    assert [] == directory.names()


@pytest.mark.parametrize("method", ["read", "size", "sync_file", "open", "modified_ms"])
def test_missing_files_are_reported(directory: Directory, method: str) -> None:
    with pytest.raises(FileNotFoundError):
        getattr(directory, method)("missing")


needs_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")


@needs_pipes
@pytest.mark.parametrize("method", ["read", "open", "sync_file"])
def test_a_pipe_counts_as_a_missing_file(folder: FolderDirectory, method: str) -> None:
    os.mkfifo(os.path.join(folder.path, "a"))

    with pytest.raises(FileNotFoundError, match=r"it is not a regular file: '.*/a'"):
        getattr(folder, method)("a")
    with pytest.raises(FileNotFoundError):
        folder.truncate("a", 0)
    assert [] == folder.names()


@needs_pipes
@pytest.mark.parametrize("name", ["a", "a.tmp"])
def test_what_creates_a_file_replaces_a_pipe(folder: FolderDirectory, name: str) -> None:
    for create in (
        lambda: folder.create("a"),
        lambda: folder.write("a", 0, b""),
        lambda: folder.replace("a", b""),
    ):
        os.mkfifo(os.path.join(folder.path, name))
        create()
        folder.remove("a.tmp")
        assert ["a"] == folder.names()
        folder.remove("a")


def test_names_and_folders_are_listed_apart_and_sorted(directory: Directory) -> None:
    directory.write("b", 0, b"")
    directory.write("a", 0, b"")
    directory.folder("z").write("inner", 0, b"")
    directory.folder("y")

    assert ["a", "b"] == directory.names()
    assert ["y", "z"] == directory.folders()
    assert ["inner"] == directory.folder("z").names()


def test_moved_folder_keeps_its_files_and_frees_its_name(directory: Directory) -> None:
    child = directory.folder("old")
    child.write("a", 0, b"content")
    child.move_to("new")
    directory.folder("old")
    child.write("b", 0, b"")

    assert ["new", "old"] == directory.folders()
    assert [] == directory.folder("old").names()
    assert ["a", "b"] == child.names() == directory.folder("new").names()


def test_removed_folder_is_gone_with_its_content(directory: Directory) -> None:
    directory.folder("a").write("file", 0, b"")
    directory.remove_folder("a")

    assert [] == directory.folders()
    assert [] == directory.folder("a").names()


def test_everything_can_be_synced(directory: Directory) -> None:
    file = directory.create("a")
    file.write_at(0, [b"x"])
    file.sync()
    directory.sync_file("a")
    directory.sync()

    assert b"x" == directory.read("a")


def test_memory_has_no_path_and_the_disk_has_one(tmp_path: Path) -> None:
    on_disk = FolderDirectory(tmp_path / "deep" / "folder")

    assert (True, str(tmp_path / "deep" / "folder")) == (on_disk.is_durable, on_disk.path)
    assert (False, None) == (MemoryDirectory().is_durable, MemoryDirectory().path)


def test_memory_knows_no_times_and_the_disk_does(folder: FolderDirectory) -> None:
    memory = MemoryDirectory()
    memory.write("a", 0, b"")
    folder.write("a", 0, b"")
    for directory in (memory, folder):
        directory.set_modified_ms("a", 1234)

    assert memory.modified_ms("a") is None
    assert 1234 == folder.modified_ms("a")


def test_errors_name_the_file(folder: FolderDirectory) -> None:
    folder.folder("a-folder")
    path = str(Path(folder.path) / "a-folder")
    calls: list[Callable[[], object]] = [
        lambda: folder.read("a-folder"),
        lambda: folder.read("a-folder", 1, 1),
        lambda: folder.create("a-folder"),
        lambda: folder.open("a-folder"),
        lambda: folder.write("a-folder", 0, b"x"),
        lambda: folder.replace("a-folder", b"x"),
        lambda: folder.truncate("a-folder", 0),
        lambda: folder.sync_file("a-folder"),
    ]
    for call in calls:
        with pytest.raises(IsADirectoryError) as raised:
            call()

        assert (path, None) == (raised.value.filename, raised.value.filename2)


def test_memory_folder_without_a_parent_cannot_be_renamed() -> None:
    with pytest.raises(ValueError, match="parent"):
        MemoryDirectory().move_to("x")


def lock_path(folder: FolderDirectory) -> str:
    return os.path.join(folder.path, ".lock")


def test_second_lock_of_a_folder_is_refused_until_the_first_is_released(
    folder: FolderDirectory,
) -> None:
    lock = folder.lock()
    with pytest.raises(ConfigError, match="in use by another broker"):
        FolderDirectory(folder.path).lock()
    lock.release()
    lock.release()

    FolderDirectory(folder.path).lock().release()


@posix
def test_a_file_system_without_locks_is_named_with_the_file(
    folder: FolderDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)

    with pytest.raises(OSError, match="No locks available") as failed:
        folder.lock()

    assert lock_path(folder) == failed.value.filename


@posix
def test_only_the_owner_can_open_the_lock(folder: FolderDirectory) -> None:
    """Whoever can open the file for reading can lock it, and keep the broker from starting."""
    lock = folder.lock()

    assert 0o600 == stat.S_IMODE(os.stat(lock_path(folder)).st_mode)
    lock.release()


@posix
def test_who_has_an_older_versions_lock_open_cannot_keep_the_broker_from_starting(
    folder: FolderDirectory,
) -> None:
    folder.create(".lock")
    os.chmod(lock_path(folder), 0o644)
    stranger = os.open(lock_path(folder), os.O_RDONLY)
    try:
        folder.lock().release()
        lock_descriptor(stranger)

        lock = FolderDirectory(folder.path).lock()
        with pytest.raises(ConfigError, match="in use by another broker"):
            FolderDirectory(folder.path).lock()
        assert 0o600 == stat.S_IMODE(os.stat(lock_path(folder)).st_mode)
        lock.release()
    finally:
        os.close(stranger)


@posix
def test_a_broker_of_an_older_version_keeps_others_out(folder: FolderDirectory) -> None:
    older = folder.create(".lock")
    lock_descriptor(older.fileno())

    with pytest.raises(ConfigError, match="in use by another broker"):
        FolderDirectory(folder.path).lock()


def test_memory_is_not_shared() -> None:
    memory = MemoryDirectory()

    memory.lock().release()
    assert [] == memory.names()


def test_lock_holds_against_another_process(folder: FolderDirectory) -> None:
    program = (
        "from trionet.broker.log import FolderDirectory\n"
        "from trionet.errors import ConfigError\n"
        f"try: FolderDirectory({folder.path!r}).lock()\n"
        "except ConfigError: print('refused')\n"
    )
    lock = folder.lock()
    refused = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    lock.release()

    assert "refused\n" == refused.stdout


def files_of_each_kind(tmp_path: Path) -> list[LogFile]:
    descriptor = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    return [unlinked_file(), SeekingLogFile(descriptor), log_file(os.memfd_create("m"))]


def test_all_kinds_of_files_write_and_read_at_positions(tmp_path: Path) -> None:
    for file in files_of_each_kind(tmp_path):
        assert 7 == file.write_at(2, [b"abc", bytearray(b"defg")])
        assert b"\0\0abcdefg" == file.read_at(0, 100)
        assert b"cd" == file.read_at(4, 2)
        file.truncate(3)
        assert (3, b"a") == (file.size(), file.read_at(2, 10))


def test_memory_without_memfd_is_an_unlinked_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "memfd_create")
    file = MemoryDirectory().create("a.log")
    file.write_at(0, [b"x"])

    assert file.in_memory
    assert (b"x", 0) == (file.read_at(0, 1), os.fstat(file.fileno()).st_nlink)


def test_systems_without_positioned_writes_seek(
    monkeypatch: pytest.MonkeyPatch, folder: FolderDirectory
) -> None:
    monkeypatch.delattr(os, "pwritev")
    file = folder.create("a.log")
    file.write_at(3, [b"x"])

    assert isinstance(file, SeekingLogFile)
    assert b"\0\0\0x" == folder.read("a.log")
