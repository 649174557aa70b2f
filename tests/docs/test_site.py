"""What `python3 docs` makes a site of: every page has its place there, and every public name."""

from __future__ import annotations

import pkgutil
import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import trionet

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The index of who reads the folder as it is; the site's includes it.
INDEX_OF_FOLDER = "README"
#: Not for users, although its `__init__` gathers names: commands, the dashboard, parts of the
#: broker, and what Spark and pytest load.
INTERNAL = (
    "trionet.__main__",
    "trionet.broker.",
    "trionet.cli",
    "trionet.dashboard",
    "trionet.spark.default_source",
    "trionet.testing.plugin",
)
#: Public modules without a list of their names: everything in them is meant for users.
CONSTANTS = (
    "trionet.errors",
    "trionet.protocol.api_keys",
    "trionet.protocol.error_codes",
    "trionet.protocol.messages",
)


def listed() -> list[str]:
    """The pages of all tables of contents, in order."""
    tables = re.findall(
        r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text("utf-8"), re.DOTALL
    )
    return [line for table in tables for line in table.splitlines() if line and line[0] != ":"]


def test_every_page_has_one_place_in_the_contents() -> None:
    pages = {path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md")}

    assert sorted([*listed(), "index"]) == sorted({*pages - {INDEX_OF_FOLDER}, "api/index"})


def test_every_page_is_in_the_index_of_the_folder() -> None:
    index = (DOCS / "README.md").read_text("utf-8")

    assert [] == [page for page in listed() if page != "api/index" and f"]({page}.md" not in index]


def public_modules() -> list[str]:
    """The packages and modules that users may import names from: those without an underscore."""
    found = pkgutil.walk_packages(trionet.__path__, "trionet.", onerror=lambda _name: None)
    names = ["trionet", *(each.name for each in found)]
    return [name for name in names if "._" not in name and not name.startswith(INTERNAL)]


def offered(module: str) -> list[str]:
    """The names that a module offers."""
    return list(getattr(import_module(module), "__all__", ()))


def documented() -> list[tuple[str, str]]:
    """Every module and name that has a directive in the pages of the API."""
    found = []
    for page in sorted((DOCS / "api").glob("*.rst")):
        module = ""
        for line in page.read_text("utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                module = line.rpartition(" ")[2]
            elif name := re.match(r"\.\. (?:auto\w+|data):: (\w+)|          ([A-Z0-9]+)$", line):
                found.append((module, name[1] or name[2]))
    return found


def identity(module: str, name: str) -> tuple[str, int]:
    """Equal for the same thing under the same name in two packages."""
    return name, id(getattr(import_module(module), name))


def test_every_public_name_has_its_docstring_on_the_site() -> None:
    pages = {identity(module, name) for module, name in documented()}

    missing = [
        f"{module}.{name}"
        for module in public_modules()
        for name in offered(module)
        if identity(module, name) not in pages
    ]

    assert [] == missing


def test_no_name_has_its_docstring_on_the_site_twice() -> None:
    times = Counter(identity(module, name) for module, name in documented())

    assert [] == [name for (name, _), count in times.items() if count > 1]


def test_every_name_on_the_site_is_public() -> None:
    assert [] == [(module, name) for module, name in documented() if name not in offered(module)]


def test_every_name_of_the_top_level_is_on_the_site_by_that_name() -> None:
    for module in ("trionet", "trionet.testing"):
        named = [name for home, name in documented() if home == module]

        assert sorted(trionet.__all__ if module == "trionet" else offered(module)) == sorted(named)


def test_every_import_in_the_pages_is_of_a_public_name() -> None:
    pages = [*DOCS.rglob("*.md"), DOCS.parent / "README.md"]
    imported = {
        (module, name.strip())
        for page in pages
        for module, names in re.findall(
            r"^from (trionet[\w.]*) import ([\w, ]+)$", page.read_text("utf-8"), re.MULTILINE
        )
        for name in names.split(",")
    }

    private = [
        f"from {module} import {name}"
        for module, name in sorted(imported)
        if not is_public(module, name)
    ]

    assert imported
    assert [] == private


def is_public(module: str, name: str) -> bool:
    """Whether users may import a name, or a module by its name, from a module."""
    if "._" in module or name.startswith("_"):
        return False
    return (
        name in offered(module)
        or module.startswith(CONSTANTS)
        or f"{module}.{name}".startswith((*CONSTANTS, "trionet.testing"))
    )
