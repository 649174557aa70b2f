"""Run a suite in an environment of its own against a broker of ours."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from suites.report import Outcome, Report
from suites.source import python_for, source
from suites.suite import Suite
from support.client import BlockingClient
from trionet.protocol import api_keys
from trionet.protocol.messages.api_versions import ApiVersionsRequest

_TESTS = Path(__file__).parents[1]
#: Of one test; foreign suites wait up to a minute for things by themselves.
TEST_SECONDS_MAX = 120


def run(suite: Suite, checkout: Path | None, more: Sequence[str]) -> Report:
    """Run it, with pytest's output passed through.

    Args:
        checkout: a folder with the source, if it is not to be fetched.
        more: further arguments for the suite's pytest.

    Raises:
        Unavailable: its source or its packages cannot be had.
    """
    folder = checkout or source(suite)
    python = python_for(suite, folder)
    with (
        tempfile.TemporaryDirectory(prefix="trionet-suite-") as scratch,
        suite.meet(Path(scratch)) as meeting,
    ):
        served = served_apis(f"127.0.0.1:{meeting.port}")
        left_out = {needs.pattern: why for needs in suite.needs if (why := needs.missing(served))}
        results = Path(scratch) / "results.json"
        wanted = Path(scratch) / "wanted.json"
        told = {"left_out": left_out, "meets_by": suite.meets_by, "results": str(results)}
        wanted.write_text(json.dumps(told))
        command: list[str | Path] = [
            *(python, "-m", "pytest", "-q"),
            *("-p", "suites.inside.outcomes", "-p", "no:cacheprovider"),
        ]
        # A thread that ends the process, which some suites ask for, would end all tests with one.
        command += ["--timeout", str(TEST_SECONDS_MAX), "--timeout-method=signal"]
        command += ["--tb=short", "--show-capture=no", *meeting.options, *more, *suite.tests]
        subprocess.run(
            command,
            check=False,
            cwd=folder,
            env={
                **os.environ,
                "PYTHONPATH": str(_TESTS),
                "PYTHONDONTWRITEBYTECODE": "1",
                "TRIONET_SUITE": str(wanted),
                **meeting.environment,
            },
        )
        if not results.exists():
            raise RuntimeError(f"the tests of {suite.name} ended without a result; see above")
        tests = json.loads(results.read_text())
    outcomes = [Outcome(name, **found) for name, found in tests.items()]
    return Report(suite.name, outcomes, suite.explained)


def served_apis(address: str) -> set[str]:
    """Kafka's names of the APIs that a broker advertises."""
    with BlockingClient(address) as client:
        response = client.call(ApiVersionsRequest(), 0)
    if response.error_code:
        raise RuntimeError(f"ApiVersions was answered with error {response.error_code}")
    return {api_keys.name_of(each.api_key) for each in response.api_keys}
