"""Certificates that change while no descriptor is left to read them."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.tls import certificate, write_pem
from support.wire import LOOPBACK
from trionet.errors import ConfigError
from trionet.net.tls._tls_context import TlsContexts, TlsSettings


@contextmanager
def descriptors(count: int) -> Iterator[None]:
    """So many can be opened meanwhile, and no more."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as stack:
        others = [stack.enter_context(open(os.devnull)) for _ in range(count)]
        stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, limits)
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 1, limits[1]))
        while True:
            try:
                stack.enter_context(open(os.devnull))
            except OSError:
                break
        for other in others:
            other.close()
        yield


@pytest.mark.parametrize("count", [0, 1])
def test_a_change_for_which_no_descriptor_was_left_is_read_later(
    tmp_path: Path, count: int
) -> None:
    """Of the file itself, or of the place from which OpenSSL reads."""
    path = tmp_path / "broker.pem"
    write_pem(path, certificate())
    contexts = TlsContexts(TlsSettings("PEM", str(path)))
    before = contexts.context
    write_pem(path, certificate(LOOPBACK, "localhost", "more.example"))

    with descriptors(count), pytest.raises(ConfigError, match="Too many open files"):
        contexts.reload_if_changed()

    assert before is contexts.context
    assert contexts.reload_if_changed()
    assert before is not contexts.context
