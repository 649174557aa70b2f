"""Metrics of the process (CPU time, memory, file descriptors), under Prometheus's usual names.

On Linux, all metrics are available. Other systems report only some of them.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from ...metrics._registry import Family, Kind, Metric, single

CPU_SECONDS = Metric(
    "process_cpu_seconds_total", Kind.COUNTER, "User and system CPU time spent, in seconds."
)
RESIDENT_BYTES = Metric(
    "process_resident_memory_bytes", Kind.GAUGE, "Resident memory size, in bytes."
)
OPEN_DESCRIPTORS = Metric("process_open_fds", Kind.GAUGE, "Open file descriptors.")
MAX_DESCRIPTORS = Metric("process_max_fds", Kind.GAUGE, "Maximum number of open file descriptors.")

_STATM = "/proc/self/statm"
_DESCRIPTORS = "/proc/self/fd"


def collect(now: float) -> Iterator[Family]:  # noqa: ARG001 - required of collectors
    """Collect the metrics; see :data:`trionet.metrics.registry.Collect`."""
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
    # Since Linux 6.2, the size of the folder is the number of file descriptors. Listing thousands
    # takes milliseconds.
    return os.stat(_DESCRIPTORS).st_size or len(os.listdir(_DESCRIPTORS)) - 1
