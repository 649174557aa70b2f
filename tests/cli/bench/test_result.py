"""What a run has found out, for people and for programs."""

from __future__ import annotations

import json

from trionet.cli.bench._result import Result, progress
from trionet.cli.bench._tally import Tally, Window


def result(*times_ms: float, failed: int = 0) -> Result:
    tally = Tally(began=10.0)
    for number, ms in enumerate(times_ms):
        tally.count(1, 100, 10.5 + number)
        tally.took(ms / 1000)
    if failed:
        tally.fail(failed, "too large", 20.0)
    return Result(
        command="produce", target="orders", things="records", latency="until it is", tally=tally
    )


def test_people_read_rates_percentiles_and_a_plot() -> None:
    lines = list(result(1.0, 2.0, 2.0, 15.0).lines(is_unicode=True))

    assert "4 records, 400 bytes in 3.500 s: 1.14 records/s, 0.00 MiB/s" == lines[0]
    assert "latency until it is:" == lines[1]
    assert lines[2].startswith("  mean 5.00 ms  p50 2.0")
    assert lines[2].endswith("  max 15.0 ms")
    assert all(" %" in line for line in lines[3:])


def test_programs_read_the_same_as_json() -> None:
    document = json.loads(json.dumps(result(1.0, 3.0, failed=2).document()))

    assert {"command": "produce", "target": "orders", "records": 2, "failed": 2} == {
        name: document[name] for name in ("command", "target", "records", "failed")
    }
    assert (10.0, 0.2, 20.0) == (
        document["seconds"],
        document["records_per_second"],
        document["bytes_per_second"],
    )
    assert {"mean": 2.0, "max": 3.0} == {
        name: document["latency_ms"][name] for name in ("mean", "max")
    }
    assert 2 == sum(each["count"] for each in document["histogram"])
    assert "metrics" not in document


def test_a_run_in_which_nothing_happened_has_a_result() -> None:
    empty = result()

    assert ["0 records, 0 bytes in 0.000 s: 0 records/s, 0.00 MiB/s"] == list(
        empty.lines(is_unicode=True)
    )
    assert {} == empty.document()["latency_ms"]


def test_a_table_has_a_row_of_figures() -> None:
    table = result(1.0).table()

    row = dict(zip(table.fields, table.rows[0], strict=True))
    assert ("produce", 1, 1.0) == (row["command"], row["records"], row["max_ms"])


def test_progress_is_a_line_about_a_window() -> None:
    window = Window(records=1000, bytes=2**20, total_us=2_000_000, max_us=9000)

    assert "3 s: 2,000 records/s, 2.00 MiB/s, mean latency 2.00 ms, max 9.00 ms" == progress(
        "records", 3, window, 0.5, is_unicode=True
    )
    assert "3 s: 0 records/s, 0.00 MiB/s" == progress("records", 3, Window(), 1.0, is_unicode=True)
