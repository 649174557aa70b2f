"""Import hooks that load public names on first use, and source instead of extension modules.

This module is loaded before all others, so it imports nothing that is slow to load.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from importlib.machinery import ModuleSpec


def lazy_exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` for a package whose names are loaded on first use.

    Importing the package then loads no other modules (PEP 562). Type checkers read the imports
    under ``TYPE_CHECKING`` in the package instead.

    Args:
        package: the package's ``__name__``.
        homes: maps each module within the package, such as ``"wire._framing"``, to its public
            names, separated by spaces.
    """
    home_of = {name: home for home, names in homes.items() for name in names.split()}

    def load(name: str) -> object:
        from importlib import import_module

        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return load, names


def prefer_source() -> None:
    """Import all further modules from source, even if compiled modules are installed.

    Called if ``TRIONET_PURE=1`` is set in the environment. It is for debuggers, tracers and
    profilers, which cannot inspect compiled code, and for checking whether a bug occurs only in
    compiled code.
    """
    sys.meta_path.insert(0, _SourceFinder())


class _SourceFinder:
    """A finder that loads from source what :class:`PathFinder` would load as an extension."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        if not name.startswith("trionet."):
            return None

        from importlib.machinery import (
            SOURCE_SUFFIXES,
            ExtensionFileLoader,
            FileFinder,
            PathFinder,
            SourceFileLoader,
        )
        from pathlib import Path

        spec = PathFinder.find_spec(name, path)
        if spec is None or not isinstance(spec.loader, ExtensionFileLoader):
            return None  # the other finders find it
        folder = str(Path(spec.loader.path).parent)
        return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES)).find_spec(name)
