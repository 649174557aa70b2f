"""The module through which Spark finds the data source: ``pyspark_trionet`` in the wheel.

In the wheel, this module is outside the package, so its import is absolute.
"""

from __future__ import annotations

from trionet.spark._data_source import TrionetDataSource as DefaultSource

__all__ = ["DefaultSource"]
