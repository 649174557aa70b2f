"""In the wheel this is the module ``pyspark_trionet``, by whose name Spark finds the source.

It is a file of its own there, beside the package: hence the name in full.
"""

from __future__ import annotations

from trionet.spark._data_source import TrionetDataSource as DefaultSource

__all__ = ["DefaultSource"]
