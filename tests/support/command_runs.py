"""A command line in this process: what it prints where, and its exit status."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from trionet.cli.main import main


class Done(NamedTuple):
    """What a command line came to."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def rows(self) -> list[list[str]]:
        """The words of the lines of a table, without its header."""
        return [line.split() for line in self.out.splitlines()[1:]]


Run = Callable[..., Done]


def runner(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command line; `stdin` is what it reads."""

    def run(*arguments: str, stdin: str = "") -> Done:
        data = io.TextIOWrapper(io.BytesIO(stdin.encode()), encoding="utf-8")
        monkeypatch.setattr("sys.stdin", data)
        capsys.readouterr()
        try:
            status = main(arguments)
        except SystemExit as stopped:  # from argparse
            status = int(stopped.code or 0)
        printed = capsys.readouterr()
        return Done(status, printed.out, printed.err)

    return run
