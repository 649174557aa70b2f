"""The command line in this process, against a broker whose loop runs in a thread of its own."""

from __future__ import annotations

import pytest

from support.command_runs import Run, runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner(capsys, monkeypatch)
