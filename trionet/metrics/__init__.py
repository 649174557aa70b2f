"""Counters, rates and histograms, their snapshots, and the Prometheus text format."""

from __future__ import annotations

from .._util._imports import lazy_exports

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from ._loop import LoopMonitor
    from ._prometheus import exposition
    from ._registry import Registry

__all__ = [
    "LoopMonitor",
    "Registry",
    "exposition",
]

_HOMES = {
    "_loop": "LoopMonitor",
    "_prometheus": "exposition",
    "_registry": "Registry",
}

if not TYPE_CHECKING:  # a type checker would take every misspelt name for a loadable one
    __getattr__, __dir__ = lazy_exports(__name__, _HOMES)
