"""What a job has written: its tables in the folder, and its topic."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from trionet.spark.pipeline._tables import TABLES
from trionet.spark.pipeline.report._queries import repeated
from trionet.spark.pipeline.results._cuts import CUTS, Cut, current_files, whole_files
from trionet.testing._threaded import ThreadedBroker

Rows = list[dict[str, Any]]


def tables(folder: Path) -> dict[str, Rows]:
    """The rows of each table, in an order of their own, with the window as a minute."""
    found = {}
    for table in TABLES:
        if (folder / table.name).exists():
            rows = read_table(folder, table.name).to_pylist()
            found[table.name] = sorted(map(_row, rows), key=repr)
    return found


def read_table(folder: Path, name: str) -> Any:
    """A table as the latest cut has it, as Arrow does; without columns if there are no rows."""
    root = folder / name

    def read() -> Any:
        cut = Cut.latest(each.name for each in (folder / CUTS).glob("*"))
        paths = (each.relative_to(root).as_posix() for each in root.glob("day=*/batch=*/*"))
        files = [str(root / each.path) for each in current_files(whole_files(paths, cut))]
        if not files:
            return pa.table({})
        partitions = {"partitioning": "hive", "partition_base_dir": str(root)}
        return ds.dataset(files, format="parquet", **partitions).to_table()

    return repeated(read)


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
