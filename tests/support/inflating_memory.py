"""What refusing a body takes, measured in a process of its own: ``python inflating_memory.py ...``.

Its arguments are a limit in bytes, and a codec and a file for each body. It prints a list of
:class:`Taken` as JSON. Linux only.

Python's memory is traced; what codecs take beside it shows in the most memory that the process has
had, which Linux counts from any moment on. Freed memory must go back to the system at once, or what
one body left behind would hide what the next one takes: see ``ENVIRONMENT``. A freed list of a
kilobyte in glibc's cache of the thread, for one, keeps all that lies below it on the heap.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

ENVIRONMENT: Final = {
    "MALLOC_MMAP_THRESHOLD_": "65536",
    "MALLOC_TRIM_THRESHOLD_": "65536",
    "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
}
_STATUS: Final = Path("/proc/self/status")
_FORGET_THE_PEAK: Final = "5"


class Taken(NamedTuple):
    """What one body took, in bytes.

    Attributes:
        error: what was raised; empty if it was not refused.
        traced: the most memory that Python had for it.
        resident: the most memory that the process had for it.
        kept: what it had for it as long as the error was there.
    """

    error: str
    traced: int
    resident: int
    kept: int


def refused(bodies: Sequence[tuple[int, Path]], limit: int) -> list[Taken]:
    """Refuse files' contents, given with their codecs, in a new process."""
    arguments = [text for codec, path in bodies for text in (str(codec), str(path))]
    done = subprocess.run(
        [sys.executable, __file__, str(limit), *arguments],
        env={**os.environ, **ENVIRONMENT},
        stdout=subprocess.PIPE,
        check=True,
        timeout=60,
    )
    return [Taken(*each) for each in json.loads(done.stdout)]


def _resident(key: str) -> int:
    for line in _STATUS.read_text().splitlines():
        if line.startswith(key):
            return int(line.split()[1]) * 1024
    raise LookupError(key)


def _taken(codec: int, body: bytes, limit: int) -> Taken:
    resident, kept, _ = _refuse(codec, body, limit)
    # Traced apart: what tracing itself takes would be counted as well.
    tracemalloc.start()
    try:
        _, _, error = _refuse(codec, body, limit)
        return Taken(error, tracemalloc.get_traced_memory()[1], resident, kept)
    finally:
        tracemalloc.stop()


def _refuse(codec: int, body: bytes, limit: int) -> tuple[int, int, str]:
    from trionet.errors import WireFormatError
    from trionet.protocol.records.compression._codecs import decompress

    Path("/proc/self/clear_refs").write_text(_FORGET_THE_PEAK)
    before = _resident("VmRSS")
    try:
        decompress(codec, body, limit)
    except WireFormatError as error:
        return _resident("VmHWM") - before, _resident("VmRSS") - before, str(error)
    return 0, 0, ""


def main() -> None:
    limit, *rest = sys.argv[1:]
    bodies = [
        (int(codec), Path(name).read_bytes())
        for codec, name in zip(rest[::2], rest[1::2], strict=True)
    ]
    for codec, body in bodies:
        _refuse(codec, body, 1)  # what is loaded or set up once is there then
    print(json.dumps([_taken(codec, body, int(limit)) for codec, body in bodies]))


if __name__ == "__main__":
    main()
