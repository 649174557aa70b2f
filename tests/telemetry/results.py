"""What the pipeline wrote, read from its Parquet: whole windows only, up to a moment."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from telemetry.counts import Counted

_NO_ERROR = "NONE"


class Results:
    """The tables of a pipeline in a folder.

    Args:
        folder: where it writes.
        before: only windows that begin before this time are looked at.
    """

    def __init__(self, folder: Path, before: datetime) -> None:
        self._folder = folder
        self._before = pa.scalar(before, pa.timestamp("us", "UTC"))

    def table(self, name: str) -> Any:
        """All rows of the windows that are looked at; no columns if there are no rows yet."""
        whole = self._whole(name)
        return whole.filter(pc.less(whole["window"], self._before)) if whole.num_rows else whole

    def _whole(self, name: str) -> Any:
        folder = self._folder / name
        if not folder.exists():
            return pa.table({})
        # A file that is being written has another name, and may go while the folder is listed.
        return ds.dataset(folder, format="parquet", partitioning="hive").to_table()

    def watermark(self) -> datetime | None:
        """Up to where windows are finished."""
        intake = self._whole("intake")
        return pc.max(intake["watermark"]).as_py() if intake.num_rows else None

    def late(self) -> int:
        """How many records came after their window was finished."""
        intake = self._whole("intake")
        return pc.sum(intake["late"]).as_py() if intake.num_rows else 0

    def counted(self) -> Counted:
        """The sums over all windows."""
        requests, errors, closes = map(self.table, ("requests", "errors", "closes"))
        return Counted(
            requests=_sums(requests, "api", "records"),
            errors={
                (api, error): count
                for (api, error), count in _sums(errors, ("api", "error"), "records").items()
                if error != _NO_ERROR
            },
            closes=_sums(closes, "reason", "connections"),
        )


def _sums(table: Any, keys: str | tuple[str, ...], column: str) -> Counter[Any]:
    found: Counter[Any] = Counter()
    if table.num_rows:
        of = (
            [table[keys].to_pylist()]
            if isinstance(keys, str)
            else [table[k].to_pylist() for k in keys]
        )
        for *key, count in zip(*of, table[column].to_pylist(), strict=True):
            found[key[0] if isinstance(keys, str) else tuple(key)] += count
    return found
