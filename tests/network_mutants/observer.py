"""A plugin of pytest, inside a run on a mutant: what was imported, and which tests failed."""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path

import pytest

MODULE = "TRIONET_MUTATED_MODULE"
FILE = "TRIONET_MUTATED_FILE"
REPORT = "TRIONET_MUTANT_REPORT"

_failed: list[str] = []
_hung: list[str] = []
_passed: list[str] = []


def pytest_configure() -> None:
    """Refuse to run when it is another file that is tested."""
    expected, imported = Path(os.environ[FILE]), importlib.import_module(os.environ[MODULE])
    if imported.__file__ is None or Path(imported.__file__) != expected:
        raise pytest.UsageError(f"{imported.__file__} is imported in place of {expected}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what becomes of each test."""
    name = report.nodeid.removeprefix("tests/")
    if report.failed:
        is_hung = "from pytest-timeout" in str(report.longrepr)
        (_hung if is_hung else _failed).append(name)
    elif report.passed and report.when == "call":
        _passed.append(name)


def pytest_sessionfinish() -> None:
    """Write it down."""
    report = {"failed": _failed, "hung": _hung, "passed": len(_passed)}
    Path(os.environ[REPORT]).write_text(json.dumps(report), "utf-8")
