"""Runs tests on a copy of the package in which one text is another."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from enum import Enum
from pathlib import Path

import attrs
import trio

from network_mutants.mutants import PACKAGE, ROOT, Mutant, bearers
from network_mutants.observer import FILE, MODULE, REPORT

# The longest of the tests that are named takes two seconds, and all of a mutant's half a minute:
# what takes so long has come to no end.
TEST_SECONDS_MAX = 30
RUN_SECONDS_MAX = 600

_TESTS_FAILED = 1  # pytest's exit status


class Verdict(Enum):
    """What the tests made of a mutant."""

    KILLED = "killed"
    HANG = "killed (hang)"
    SURVIVED = "survived"
    INVALID = "invalid"


@attrs.frozen
class Observed:
    """One run of pytest.

    Attributes:
        status: its exit status; None if it was ended after :data:`RUN_SECONDS_MAX`.
        failed: the tests that failed, below ``tests``.
        running: the test that was ended, with all of it, after :data:`TEST_SECONDS_MAX`; or "".
        passed: how many passed.
        output: what it printed.
    """

    status: int | None
    failed: list[str] = attrs.field(factory=list)
    running: str = ""
    passed: int = 0
    output: str = ""


@attrs.frozen
class Outcome:
    """What became of one mutant.

    Attributes:
        name: the mutant's.
        verdict: whether a test has noticed it.
        detail: by what it was killed, or why it was not.
        seconds: how long that took.
    """

    name: str
    verdict: Verdict
    detail: str
    seconds: float


async def observe(tests: Sequence[str], mutant: Mutant | None, *, stops_at_first: bool) -> Observed:
    """Run tests in pure Python on a copy of the package, mutated if there is a mutant."""
    with tempfile.TemporaryDirectory(prefix="trionet-mutant-") as name:
        folder = Path(name)
        package = folder / "trionet"
        await trio.to_thread.run_sync(_copy, package)
        file = package / (mutant.file if mutant is not None else "net/_selector.py")
        if mutant is not None:
            file.write_text(mutant.apply(file.read_text("utf-8")), "utf-8")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([name, str(ROOT / "tests"), str(ROOT / ".ci")]),
            "TRIONET_PURE": "1",
            MODULE: mutant.module if mutant is not None else "trionet.net._selector",
            FILE: str(file),
            REPORT: str(folder / "report.json"),
        }
        # -P: or the checkout, which is the current folder, would come first.
        command = [sys.executable, "-P", "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-p", "network_mutants.observer", f"--timeout={TEST_SECONDS_MAX}"]
        # A signal would end one example of a property test, and another would hang in its place.
        command += ["--timeout-method=thread"]
        command += ["-x"] * stops_at_first + [f"tests/{test}" for test in tests]
        process: subprocess.CompletedProcess[bytes] | None = None
        with trio.move_on_after(RUN_SECONDS_MAX):
            process = await trio.run_process(
                command,
                cwd=ROOT,
                env=environment,
                check=False,
                capture_stdout=True,
                stderr=subprocess.STDOUT,
            )
        if process is None:
            return Observed(None)
        output = process.stdout.decode("utf-8", "replace")
        report = folder / "report.json"
        noted = json.loads(report.read_text("utf-8")) if report.exists() else {}
        return Observed(process.returncode, output=output, **noted)


def _copy(package: Path) -> None:
    compiled = shutil.ignore_patterns("*.so", "*.pyd")
    shutil.copytree(PACKAGE, package, ignore=compiled)


def selections(mutant: Mutant) -> list[list[str]]:
    """What has to fail, each: the tests, or of each conformance line those that bear it."""
    if not mutant.lines:
        return [mutant.tests]
    return [[each for each in bearers(line) if mutant.is_near(each)] for line in mutant.lines]


def judge(observed: Observed) -> tuple[Verdict, str]:
    """Whether the tests have noticed a mutant, and what tells so. Pure."""
    if observed.status is None:
        return Verdict.HANG, f"the tests did not end within {RUN_SECONDS_MAX} s"
    if observed.status not in (0, _TESTS_FAILED):
        return Verdict.INVALID, _last_line(observed.output)
    if observed.failed:
        return Verdict.KILLED, _name(observed.failed[0])
    if observed.running:
        name = _name(observed.running)
        return Verdict.HANG, f"{name} did not end within {TEST_SECONDS_MAX} s"
    if not observed.passed:
        return Verdict.INVALID, f"no test has run: {_last_line(observed.output)}"
    return Verdict.SURVIVED, f"{observed.passed} tests passed"


def _name(test: str) -> str:
    return test.partition("[")[0]


def _last_line(output: str) -> str:
    return next((line for line in reversed(output.splitlines()) if line.strip()), "no output")


async def run(mutant: Mutant) -> Outcome:
    """Run the tests of a mutant, up to the first that fails; with lines, for each of these."""
    began = trio.current_time()
    verdict, detail = Verdict.INVALID, "no tests are named"
    for tests in selections(mutant):
        try:
            verdict, detail = judge(await observe(tests, mutant, stops_at_first=True))
        except ValueError as error:
            verdict, detail = Verdict.INVALID, str(error)
        if verdict in (Verdict.SURVIVED, Verdict.INVALID):
            break
    return Outcome(mutant.name, verdict, detail, trio.current_time() - began)


async def run_unmutated(mutants: Sequence[Mutant]) -> str:
    """Run all tests that mutants name on the package as it is; what is wrong, if anything is."""
    tests = list(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    observed = await observe(tests, None, stops_at_first=False)
    if observed.status == 0:
        return ""
    broken = ", ".join(filter(None, [*observed.failed, observed.running]))
    broken = broken or _last_line(observed.output)
    return f"tests fail without any mutant: {broken}"
