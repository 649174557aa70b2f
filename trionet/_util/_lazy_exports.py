"""Public names of a package that are loaded when they are first used (PEP 562)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # to import it from typing takes longer than all that is loaded here

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def lazy_exports(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package whose names are loaded on first use.

    Importing the package then costs nothing, however much its names need. Type checkers read the
    imports that the package has below ``TYPE_CHECKING`` instead.

    Args:
        package: the package's ``__name__``.
        homes: for each public name, its module below the package, such as ``"wire._framing"``.
    """

    def load(name: str) -> object:
        from importlib import import_module

        home = homes.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{home}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return load, names
