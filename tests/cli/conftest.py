"""The command line in this process, against a broker whose loop runs in a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.command_line import CommandLine
from support.command_runs import Run, runner
from trionet.testing import broker


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)


@pytest.fixture(scope="package")
def bootstrap() -> Iterator[str]:
    """The broker of tests that write and read topics of their own."""
    with broker() as running:
        yield running.bootstrap_servers


@pytest.fixture
def trionet(bootstrap: str, capfdbinary: pytest.CaptureFixture[bytes]) -> CommandLine:
    return CommandLine(bootstrap, capfdbinary)
