"""Files that hold a password or a token in their first line."""

from __future__ import annotations

from typing import Final

from ..._util._regular_file import read_regular_file

_BYTES_MAX: Final = 64 * 1024


def first_line_of(path: str) -> str:
    """The first line of a file or, as in ``<(command)``, of a pipe, without its end.

    Raises:
        OSError: the file cannot be read, is a device or a folder, or is too large.
        UnicodeDecodeError: it is not UTF-8.
    """
    text = read_regular_file(path, _BYTES_MAX, takes_pipes=True).decode()
    return (text.splitlines() or [""])[0]
