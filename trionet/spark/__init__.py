"""Kafka topics in Spark without a jar: a data source and sink for PySpark, and its lag metrics.

Names are loaded on first use (PEP 562): Spark imports every ``pyspark_*`` module of an environment
when a session first uses any Python data source, so importing this package must cost nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # importing it from typing takes longer than everything else here

if TYPE_CHECKING:
    from .lag_listener import LagListener
    from .progress import SourceLag, lag
    from .source import TrionetDataSource

__all__ = ["LagListener", "SourceLag", "TrionetDataSource", "lag"]

#: The module that defines each public name.
_HOMES = {
    "LagListener": "lag_listener",
    "SourceLag": "progress",
    "TrionetDataSource": "source",
    "lag": "progress",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
