"""Kafka topics in Spark without a jar: a data source for PySpark, and what belongs to it.

A name is loaded when it is first used (PEP 562): Spark looks into every ``pyspark_*`` module of an
environment when a session first uses any source, so that importing this must cost nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._data_source import TrionetDataSource
    from .source._lag import SourceLag, lag
    from .source._lag_listener import LagListener

__all__ = ["LagListener", "SourceLag", "TrionetDataSource", "lag"]

#: The module that each name comes from.
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
