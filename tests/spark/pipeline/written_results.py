"""What a job has written: its tables in the folder, and its topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds

from trionet.spark.pipeline._tables import TABLES
from trionet.testing._threaded import ThreadedBroker

Rows = list[dict[str, Any]]


def tables(folder: Path) -> dict[str, Rows]:
    """The rows of each table, in an order of their own, with the window as a minute."""
    found = {}
    for table in TABLES:
        if (folder / table.name).exists():
            read = ds.dataset(folder / table.name, format="parquet", partitioning="hive")
            found[table.name] = sorted(map(_row, read.to_table().to_pylist()), key=repr)
    return found


def _row(row: dict[str, Any]) -> dict[str, Any]:
    window = row.pop("window")
    assert f"{window:%Y-%m-%d}" == str(row.pop("day"))
    return {"window": int(window.timestamp()) // 60, **row}


def without_batches(found: dict[str, Rows]) -> dict[str, Rows]:
    """Tables without what depends on how records are cut into micro-batches."""
    return {
        name: sorted(({k: v for k, v in row.items() if k != "batch"} for row in rows), key=repr)
        for name, rows in found.items()
        if name != "intake"
    }


def published(broker: ThreadedBroker, topic: str) -> dict[str, list[str]]:
    """The values of each key in the topic of results, in order."""
    found: dict[str, list[str]] = {}
    for record in broker.records(topic):
        assert record.key is not None
        assert record.value is not None
        found.setdefault(record.key.decode(), []).append(record.value.decode())
    return found


def documents(values: dict[str, list[str]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Keys and values as what they say; each key has one value, however often."""
    assert all(len(set(each)) == 1 for each in values.values())
    return [(json.loads(key), json.loads(each[0])) for key, each in values.items()]
