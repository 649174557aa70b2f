"""A data source and sink that connect PySpark to Kafka topics without a JAR, and report lag.

Names are loaded on first use (PEP 562): Spark imports every ``pyspark_*`` module of an environment
when a session first uses any Python data source, so importing this package must be cheap.
"""

from __future__ import annotations

from .._util._imports import lazy_exports

TYPE_CHECKING = False  # importing it from typing takes longer than everything else here

if TYPE_CHECKING:
    from ._data_source import TrionetDataSource
    from ._worker_python import worker_python
    from .source._lag import SourceLag, lag
    from .source._lag_listener import LagListener

__all__ = ["LagListener", "SourceLag", "TrionetDataSource", "lag", "worker_python"]

#: The module that defines each public name.
_HOMES = {
    "_data_source": "TrionetDataSource",
    "_worker_python": "worker_python",
    "source._lag": "SourceLag lag",
    "source._lag_listener": "LagListener",
}


if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
