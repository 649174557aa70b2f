"""``TRIONET_PURE=1``: run the Python source of every module, also where it is installed compiled.

For debuggers, tracers and profilers, which see nothing of compiled code, and to find out whether a
fault has to do with it. Loaded only when it is asked for.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import (
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pathlib import Path


def prefer_source() -> None:
    """From now on ``import`` takes the source that lies beside an extension module of trionet."""
    sys.meta_path.insert(0, _SourceFinder())


class _SourceFinder:
    """Finds what :class:`PathFinder` would find as an extension module, but its source."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        if not name.startswith("trionet."):
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            return None  # as everybody else finds it
        folder = str(Path(spec.loader.path).parent)
        return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
