"""A pytest plugin for foreign suites: it leaves tests out, and writes what came of all.

It runs in the suite's environment, so that it imports nothing but pytest and the standard library.
The variable ``TRIONET_SUITE`` names a file in JSON: ``left_out`` says which tests are (patterns of
ids, and why), ``meets_by`` which fixtures a test has that counts, ``results`` is the file that is
written.
"""

from __future__ import annotations

import fnmatch
import json
import os
from pathlib import Path

import pytest


class Outcomes:
    """What came of each test.

    Args:
        left_out: why tests are left out, by pattern.
        meets_by: a test that has none of these fixtures is passed over; empty for none.
        results: the file that is written at the end.
    """

    def __init__(self, left_out: dict[str, str], meets_by: list[str], results: Path) -> None:
        self._left_out = left_out
        self._meets_by = meets_by
        self._results = results
        self._tests: dict[str, dict[str, str]] = {}

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        dropped = []
        for item in items:
            fixtures = getattr(item, "fixturenames", ())
            if self._meets_by and not any(name in fixtures for name in self._meets_by):
                dropped.append(item)
            elif reason := self._reason(item.nodeid):
                self._tests[item.nodeid] = {"outcome": "left out", "why": reason}
                dropped.append(item)
        if dropped:
            config.hook.pytest_deselected(items=dropped)
            items[:] = [item for item in items if item not in dropped]

    def _reason(self, test: str) -> str:
        for pattern, reason in self._left_out.items():
            # The brackets of parametrized tests are no sets of characters.
            if fnmatch.fnmatchcase(test, pattern.replace("[", "[[]")):
                return reason
        return ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "call" and report.passed:
            return
        # What fails when a test is set up or torn down is a failure, too; the first one counts.
        if self._tests.get(report.nodeid, {}).get("outcome") == "failed":
            return
        why = ""
        if report.skipped:
            why = report.longrepr[2] if isinstance(report.longrepr, tuple) else "expected failure"
        elif report.failed:
            lines = [line for line in report.longreprtext.splitlines() if line.startswith("E")]
            why = lines[0][1:].strip() if lines else report.longreprtext.strip()[-200:]
        self._tests[report.nodeid] = {"outcome": report.outcome, "why": why}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            why = report.longreprtext.strip().splitlines()[-1]
            self._tests[report.nodeid] = {"outcome": "failed", "why": why}

    def pytest_sessionfinish(self) -> None:
        self._results.write_text(json.dumps(self._tests))


def pytest_configure(config: pytest.Config) -> None:
    wanted = json.loads(Path(os.environ["TRIONET_SUITE"]).read_text())
    results = Path(wanted["results"])
    config.pluginmanager.register(Outcomes(wanted["left_out"], wanted["meets_by"], results))
