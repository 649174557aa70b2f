"""Searches in one target after another, each in a process of its own, and tells how it goes."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import IO

import attrs

from fuzz.corpus import SEEDS

ROOT = Path(__file__).resolve().parents[2]

#: How long a worker may take beside its search: to start, and with the last input.
GRACE_SECONDS = 90
#: How often a line reports how far the search is where lines cannot be written again.
LINE_SECONDS = 30
TRACE_LINES_MAX = 40

_STATUS = re.compile(r"#(?P<runs>\d+)\s+\w+(?:\s+cov: (?P<branches>\d+) .* corp: (?P<inputs>\d+))?")
_TRACE = re.compile(r"^ === (?:Uncaught Python exception|Timeout)")


@attrs.frozen
class Searched:
    """What came of one target.

    Attributes:
        name: of the target.
        seconds: how long the search was.
        runs: how many inputs were fed.
        branches: how many branches of the package they took; 0 where nothing counts them.
        find: the file with the input that broke something; None if there is none.
        trace: what it broke, as text.
    """

    name: str
    seconds: float
    runs: int
    branches: int
    find: Path | None
    trace: str

    @property
    def is_clean(self) -> bool:
        return not self.trace


class Search:
    """One target's.

    Args:
        name: of the target.
        seconds: how long to search.
        folder: for the inputs that are found to be new, those that break something, and a log.
        atheris: where it is imported from; None searches without.
        seeds: where the targets' kept inputs are.
    """

    def __init__(
        self, name: str, seconds: int, folder: Path, atheris: Path | None, seeds: Path = SEEDS
    ) -> None:
        self._name = name
        self._seconds = seconds
        self._seeds = seeds / name
        self._log = folder / f"{name}.log"
        self._finds = folder / "finds"
        self.corpus = folder / "corpus" / name
        self._atheris = atheris
        self._runs = self._branches = 0

    def run(self, line: StatusLine) -> Searched:
        """Search; a line reports how far it is."""
        for made in (self.corpus, self._finds):
            made.mkdir(parents=True, exist_ok=True)
        began = time.monotonic()
        with subprocess.Popen(
            self._command(),
            cwd=ROOT,
            env=self._environment(),
            stdout=subprocess.PIPE,  # where atheris tells of exceptions; libFuzzer uses the other
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as worker:
            assert worker.stdout is not None
            reader = threading.Thread(target=self._read, args=(worker.stdout,))
            reader.start()
            try:
                self._wait(worker, began, line)
            finally:
                worker.kill()
                reader.join()
        seconds = time.monotonic() - began
        line.clear()
        find = max(self._finds.glob(f"{self._name}-*"), default=None, key=os.path.getmtime)
        trace = "" if worker.returncode == 0 else self._trace(worker.returncode)
        return Searched(self._name, seconds, self._runs, self._branches, find, trace)

    def _wait(self, worker: subprocess.Popen[str], began: float, line: StatusLine) -> None:
        while (now := time.monotonic()) < began + self._seconds + GRACE_SECONDS:
            line.show(f"{self._name}: {now - began:.0f} of {self._seconds} s, {self._runs:,} runs")
            try:
                worker.wait(1)
            except subprocess.TimeoutExpired:
                continue
            return
        # Whatever holds it, libFuzzer's own limit for one input has not ended it.

    def _read(self, told: IO[str]) -> None:
        with self._log.open("w") as log:
            for text in told:
                log.write(text)
                if status := _STATUS.match(text):
                    self._runs = int(status["runs"])
                    self._branches = int(status["branches"] or 0)

    def _trace(self, status: int) -> str:
        lines = self._log.read_text().splitlines()
        first = next((at for at, text in enumerate(lines) if _TRACE.match(text)), None)
        if first is None:
            told = [f"the search ended with status {status}:", *lines[-TRACE_LINES_MAX:]]
        else:
            told = lines[first : first + TRACE_LINES_MAX]
        return "\n".join(told)

    def _command(self) -> list[str]:
        folders = [str(self.corpus), str(self._seeds), str(self._finds)]
        command = [sys.executable, "-m", "fuzz.worker", self._name, str(self._seconds), *folders]
        return command if self._atheris is not None else [*command, "--blind"]

    def _environment(self) -> dict[str, str]:
        path = [str(ROOT / "tests"), str(self._atheris or ""), os.environ.get("PYTHONPATH", "")]
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
            # The same inputs take the same branches, in the source that can be watched.
            "PYTHONHASHSEED": "0",
            "PYTHONUNBUFFERED": "1",
            "TRIONET_PURE": "1",
        }


class StatusLine:
    """One line that is written again and again; where that cannot be, a line now and then."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._is_live = stream.isatty()
        self._last_at = time.monotonic()

    def show(self, text: str) -> None:
        """Write it, if it is time to."""
        now = time.monotonic()
        if self._is_live:
            self._stream.write(f"\r\033[K{text}")
        elif now - self._last_at >= LINE_SECONDS:
            self._last_at = now
            self._stream.write(f"{text}\n")
        self._stream.flush()

    def clear(self) -> None:
        """Make room for another text."""
        if self._is_live:
            self._stream.write("\r\033[K")
        self._stream.flush()


def table(searched: Iterable[Searched]) -> str:
    """The figures, a line for each target."""
    return "\n".join(
        f"{one.name:<18} {one.seconds:>5.0f} s {one.runs:>12,} runs"
        f" {one.runs / max(1.0, one.seconds):>9,.0f}/s"
        + (f" {one.branches:>5} branches" if one.branches else "")
        + ("" if one.is_clean else "  FOUND SOMETHING")
        for one in searched
    )
