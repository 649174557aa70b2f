"""Standard streams write what they are given once, wherever Ctrl-C interrupts them."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING

import pytest

from trionet.cli.terminal import _streams
from trionet.cli.terminal._streams import _Messages, _Output, _UnbufferedOutput

if TYPE_CHECKING:
    from _typeshed import TraceFunction

LINES_MAX = 30
"""More than a write and a flush take."""


@contextmanager
def ctrl_c_before_line(number: int) -> Iterator[None]:
    """Raise KeyboardInterrupt before a line of the module, as Python does at a signal."""
    left = number

    def trace(frame: FrameType, event: str, _: object) -> TraceFunction | None:
        nonlocal left
        if frame.f_code.co_filename != _streams.__file__:
            return None
        left -= event == "line"
        if not left:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize(
    "make",
    [
        lambda descriptor: _Output(io.FileIO(descriptor, "w")),
        lambda descriptor: _UnbufferedOutput(io.FileIO(descriptor, "w")),
        lambda descriptor: _Messages(descriptor, "w"),
    ],
)
@pytest.mark.parametrize("number", range(1, LINES_MAX))
def test_a_line_is_written_once_at_most(
    make: Callable[[int], io.BufferedWriter], number: int
) -> None:
    reading, writing = os.pipe()
    stream = io.TextIOWrapper(make(writing), line_buffering=True)

    with suppress(KeyboardInterrupt), ctrl_c_before_line(number):
        stream.write("once\n")
    stream.close()

    with open(reading, "rb") as reader:
        written = reader.read()
    assert written in (b"", b"once\n")
    assert written or number < LINES_MAX - 1
