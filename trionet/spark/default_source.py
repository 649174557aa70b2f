"""The entry point by which Spark finds the data source: the wheel's module ``pyspark_trionet``.

The wheel contains it beside the package, not inside: hence the absolute import.
"""

from __future__ import annotations

from trionet.spark._data_source import TrionetDataSource as DefaultSource

__all__ = ["DefaultSource"]
