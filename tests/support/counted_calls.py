"""How much is done in a block, in a measure that does not depend on the machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def counted_calls() -> Iterator[list[int]]:
    """Count the calls of functions in the block, which does not wait."""
    count, before = [0], sys.getprofile()

    def note(_frame: object, event: str, _argument: object) -> None:
        count[0] += event in {"call", "c_call"}

    sys.setprofile(note)
    try:
        yield count
    finally:
        sys.setprofile(before)
