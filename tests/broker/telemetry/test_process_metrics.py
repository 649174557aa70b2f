"""The process, as its system tells it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from trionet.broker.telemetry import _broker_metrics
from trionet.metrics._registry import Registry


def numbers() -> dict[str, float]:
    registry = Registry()
    registry.register(_broker_metrics.collect_process)
    return {name: family.of() for name, family in registry.snapshot(0).items()}


@pytest.mark.skipif(sys.platform != "linux", reason="told by Linux")
def test_time_memory_and_descriptors_are_reported(tmp_path: Path) -> None:
    before = numbers()
    with (tmp_path / "file").open("w"):
        after = numbers()

    assert 0 < before["process_cpu_seconds_total"] <= after["process_cpu_seconds_total"]
    assert 1_000_000 < after["process_resident_memory_bytes"] < 100_000_000_000
    assert before["process_open_fds"] + 1 == after["process_open_fds"] < after["process_max_fds"]


def test_what_the_system_does_not_report_is_left_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(_broker_metrics, "_STATM", str(tmp_path / "nothing"))

    found = numbers()

    assert "process_resident_memory_bytes" not in found
    assert 0 == found["trionet_metrics_collector_errors_total"]
    assert {"process_cpu_seconds_total", "process_max_fds"} <= set(found)
