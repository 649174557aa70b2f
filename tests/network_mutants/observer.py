"""A plugin of pytest, inside a run on a mutant: what was imported, and which tests failed."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

MODULE = "TRIONET_MUTATED_MODULE"
FILE = "TRIONET_MUTATED_FILE"
REPORT = "TRIONET_MUTANT_REPORT"

_report: dict[str, Any] = {"failed": [], "passed": 0, "running": ""}


def pytest_configure() -> None:
    """Refuse to run when it is another file that is tested."""
    expected, imported = Path(os.environ[FILE]), importlib.import_module(os.environ[MODULE])
    if imported.__file__ is None or Path(imported.__file__) != expected:
        raise pytest.UsageError(f"{imported.__file__} is imported in place of {expected}")


def pytest_runtest_logstart(nodeid: str) -> None:
    """Note which test runs, since one that hangs ends the process."""
    _report["running"] = nodeid.removeprefix("tests/")
    _write()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what becomes of a test."""
    if report.failed:
        _report["failed"].append(report.nodeid.removeprefix("tests/"))
    elif report.passed and report.when == "call":
        _report["passed"] += 1


def pytest_sessionfinish() -> None:
    """Write it all down."""
    _report["running"] = ""
    _write()


def _write() -> None:
    Path(os.environ[REPORT]).write_text(json.dumps(_report), "utf-8")
