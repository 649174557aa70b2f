"""Imports run downward only.

The design's house as data. An import counts wherever it stands: at the top, inside a function, or
below ``TYPE_CHECKING``, since a module that needs a type knows its home.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "trionet"

#: Every folder and module directly below ``trionet/`` has a level, or the first test fails.
LEVELS = {
    "errors": 0,
    "_util": 0,
    "protocol": 1,
    "metrics": 1,
    "net": 2,
    "server": 3,
    "client": 3,
    "broker": 4,
    "jafka": 4,
    "dashboard": 5,
    "spark": 5,
    "testing": 5,
    "cli": 6,
    # The entrance, and the root, which re-exports names of any folder: nobody imports from them.
    "__main__": 7,
    "__init__": 7,
}

#: Modules beside the `__init__` of a room, unless docs/design.md says why there are more.
MODULES_MAX = 15

#: What a folder must not touch although it is not ours: I/O, and the clock.
FOREIGN = {
    "protocol": {"trio", "socket", "select", "ssl", "time"},
}

#: What everybody may take from the root, which is loaded before anything else.
FROM_ROOT = {"__version__", "is_compiled"}


class Import(NamedTuple):
    """One imported module of ours."""

    importer: str
    imported: str
    line: int


def module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 2 else parts)


SOURCES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def folder(module: str) -> str:
    """``trionet.broker.log.segments._segment`` → ``broker``; the root itself is ``__init__``."""
    return module.split(".")[1] if "." in module else "__init__"


def imports_of(module: str, path: Path) -> Iterator[Import]:
    tree = ast.parse(path.read_text("utf-8"))
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    package = package.removesuffix(".__init__")
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for imported in sorted(set(imported_modules(node, package))):
                yield Import(module, imported, node.lineno)


def imported_modules(node: ast.Import | ast.ImportFrom, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    else:
        base = node.module or ""
        if node.level:
            parts = package.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *base.split(".")]).rstrip(".")
        # `from trionet.net import _selector` imports the module, `… import Selector` the package.
        names = [
            whole if (whole := f"{base}.{alias.name}") in SOURCES else base
            for alias in node.names
            if not (base == "trionet" and alias.name in FROM_ROOT)
        ]
    return iter(names)


EVERY_IMPORT = [found for module, path in SOURCES.items() for found in imports_of(module, path)]
IMPORTS = [found for found in EVERY_IMPORT if found.imported.split(".")[0] == "trionet"]


def test_everything_below_the_package_has_a_level() -> None:
    actual = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path.is_dir() and any(path.rglob("*.py")))
    }

    assert set() == actual - LEVELS.keys()


def test_imports_run_downward_only() -> None:
    wrong = [
        f"{found.importer}:{found.line} imports {found.imported}: level "
        f"{LEVELS[folder(found.importer)]} must not know level {LEVELS[folder(found.imported)]}"
        for found in IMPORTS
        if folder(found.importer) != folder(found.imported)
        and LEVELS[folder(found.importer)] <= LEVELS[folder(found.imported)]
    ]

    assert not wrong, "\n" + "\n".join(wrong)


def test_bytes_and_numbers_do_no_input_or_output() -> None:
    wrong = [
        f"{found.importer}:{found.line} imports {found.imported}"
        for found in EVERY_IMPORT
        if found.imported.split(".")[0] in FOREIGN.get(folder(found.importer), ())
    ]

    assert not wrong, "\n" + "\n".join(wrong)


def test_modules_of_a_package_do_not_import_each_other_in_a_circle() -> None:
    graph: dict[str, set[str]] = {module: set() for module in SOURCES}
    for found in IMPORTS:
        if inside_one_package(found) and found.importer != found.imported:
            graph[found.importer].add(found.imported)

    circle = find_circle(graph)

    assert not circle, "circle: " + " -> ".join(circle)


def test_rooms_of_a_package_do_not_import_each_other_in_a_circle() -> None:
    """A package and its own rooms may: it puts together what they hold."""
    graph: dict[str, set[str]] = {}
    for found in IMPORTS:
        importer, imported = room(found.importer), room(found.imported)
        is_nested = f"{importer}.".startswith(f"{imported}.") or f"{imported}.".startswith(
            f"{importer}."
        )
        if inside_one_package(found) and not is_nested and found.imported in SOURCES:
            graph.setdefault(importer, set()).add(imported)

    circle = find_circle(graph)

    assert not circle, "circle: " + " -> ".join(circle)


def inside_one_package(found: Import) -> bool:
    return folder(found.importer) == folder(found.imported)


def room(module: str) -> str:
    """The package that a module is in; a package itself is its own room."""
    return module if SOURCES[module].name == "__init__.py" else module.rpartition(".")[0]


def test_a_room_has_no_more_modules_than_a_reader_can_see_at_once() -> None:
    page = (PACKAGE.parent / "docs" / "design.md").read_text("utf-8")
    explained = set(re.findall(r"^\* `(trionet/[\w/]+)/`: ", page, re.MULTILINE))
    generated = PACKAGE / "protocol" / "messages"
    rooms = {path.parent for path in PACKAGE.rglob("*.py") if not path.is_relative_to(generated)}

    crowded = {
        path.relative_to(PACKAGE.parent).as_posix()
        for path in rooms
        if len([each for each in path.glob("*.py") if each.name != "__init__.py"]) > MODULES_MAX
    }

    assert explained == crowded


def find_circle(graph: Mapping[str, set[str]]) -> list[str]:
    """One circle of modules, closed by repeating its first; empty when there is none."""
    finished: set[str] = set()

    def visit(module: str, trail: list[str]) -> list[str]:
        if module in trail:
            return [*trail[trail.index(module) :], module]
        if module not in finished:
            for imported in sorted(graph.get(module, ())):
                if circle := visit(imported, [*trail, module]):
                    return circle
            finished.add(module)
        return []

    for module in graph:
        if circle := visit(module, []):
            return circle
    return []


@pytest.mark.parametrize(
    ("graph", "circle"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b", "c"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}}, ["a", "b", "a"]),
        ({"a": {"b"}, "b": {"c"}, "c": {"b"}}, ["b", "c", "b"]),
    ],
)
def test_a_circle_is_found_when_there_is_one(graph: dict[str, set[str]], circle: list[str]) -> None:
    actual = find_circle(graph)

    assert circle == actual


@pytest.mark.parametrize(
    ("statement", "package", "modules"),
    [
        ("import trionet.net._channel", "trionet.server", ["trionet.net._channel"]),
        ("import trio, os", "trionet.server", ["trio", "os"]),
        ("from trionet.net._channel import Channel", "trionet.server", ["trionet.net._channel"]),
        ("from trionet.net import _channel", "trionet.server", ["trionet.net._channel"]),
        ("from ..net._channel import Channel", "trionet.server", ["trionet.net._channel"]),
        ("from ._channel import Channel", "trionet.net", ["trionet.net._channel"]),
        ("from . import _channel", "trionet.net", ["trionet.net._channel"]),
        ("from .. import errors", "trionet.net", ["trionet.errors"]),
        ("from trionet import open_broker", "trionet.net", ["trionet"]),
        ("from trionet import __version__", "trionet.net", []),
    ],
)
def test_an_import_is_resolved_to_the_module_it_loads(
    statement: str, package: str, modules: list[str]
) -> None:
    node = ast.parse(statement).body[0]
    assert isinstance(node, ast.Import | ast.ImportFrom)

    actual = list(imported_modules(node, package))

    assert modules == actual
