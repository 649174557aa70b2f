"""What file descriptors can do that differs by platform."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from support.limits import descriptor_limit
from trionet._util.files._descriptors import sync_folder


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux waits for what sync() writes")
def test_a_folder_is_synced_when_no_descriptor_is_left(tmp_path: Path) -> None:
    """Connections may take all of them, and a broker ends if it cannot flush."""
    taken: list[int] = []
    with descriptor_limit(10):
        try:
            with suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            with pytest.raises(OSError, match="Too many open files"):
                os.open(tmp_path, os.O_RDONLY)
            sync_folder(str(tmp_path))
        finally:
            for each in taken:
                os.close(each)


def test_a_folder_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        sync_folder(str(tmp_path / "missing"))

    assert errno.ENOENT == caught.value.errno
