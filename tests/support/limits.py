"""Limits of this process, for as long as a block."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

import pytest


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Files of this process grow no further, as on a full disk."""
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)


@contextmanager
def descriptor_limit(left: int) -> Iterator[None]:
    """This process opens so many more files, of those that logs may have, and then no more."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    descriptor = os.dup(0)
    os.close(descriptor)
    # A sixteenth of them is not for logs; see check_descriptor_limit().
    limit = next(
        number
        for number in range(descriptor, before[0])
        if number - number // 16 == descriptor + left
    )
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
