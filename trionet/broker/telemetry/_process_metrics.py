"""The process as Prometheus's client libraries tell it: time, memory, descriptors.

What a system does not tell is left out; all of it comes from Linux.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from ...metrics._families import Family, Kind, Metric, single

CPU_SECONDS = Metric(
    "process_cpu_seconds_total", Kind.COUNTER, "User and system time that was used, in seconds."
)
RESIDENT_BYTES = Metric(
    "process_resident_memory_bytes", Kind.GAUGE, "Memory that is in RAM, in bytes."
)
OPEN_DESCRIPTORS = Metric("process_open_fds", Kind.GAUGE, "Open file descriptors.")
MAX_DESCRIPTORS = Metric("process_max_fds", Kind.GAUGE, "File descriptors that may be open.")

_STATM = "/proc/self/statm"
_DESCRIPTORS = "/proc/self/fd"


def collect(now: float) -> Iterator[Family]:  # noqa: ARG001 - all collectors take it
    """The families of this moment (see :data:`trionet.metrics._registry.Collect`)."""
    yield single(CPU_SECONDS, time.process_time())
    try:
        with open(_STATM, encoding="ascii") as file:
            pages = int(file.read().split()[1])
        yield single(RESIDENT_BYTES, pages * os.sysconf("SC_PAGE_SIZE"))
        yield single(OPEN_DESCRIPTORS, _open_descriptors())
    except (OSError, ValueError):
        pass  # not Linux
    try:
        import resource
    except ImportError:  # Windows
        return
    yield single(MAX_DESCRIPTORS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _open_descriptors() -> int:
    # Since Linux 6.2 the size of the folder is the number; to count thousands takes milliseconds.
    return os.stat(_DESCRIPTORS).st_size or len(os.listdir(_DESCRIPTORS)) - 1
