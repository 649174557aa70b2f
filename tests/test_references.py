"""What docstrings, comments and pages refer to exists: modules, names in them, files.

A role of a docstring is read as an import is: ``:mod:`` takes a module, from the root or, with
leading dots, from where the docstring stands; the others take a name of a module, or one that the
docstring's own module has. As in Sphinx, a name with one dot in front of it is that of any module.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from pydoc import locate

import pytest

ROOT = Path(__file__).resolve().parent.parent
#: Modules are named from here.
HOMES = (ROOT / "tests", ROOT / ".ci", ROOT / "docs", ROOT)
ROLE = re.compile(r":(?P<role>mod|class|func|meth|attr|exc|data|const|obj):`~?(?P<target>[^`]+)`")
DOTTED = re.compile(r"(?<![\w./-])(trionet(?:\.\w+)+)")
PRIVATE = re.compile(r"``(_[a-z]\w*)(?:\(\))?``")
FILE = re.compile(r"(?<![\w./*-])((?:trionet|tests|demo|docs|\.ci)/[\w./-]*\w|(?:\w+/)*_\w+\.py\b)")
#: A ``#`` in a string begins no comment; what follows there looks like no reference.
COMMENT = re.compile(r"#.*")

#: What looks like a name: a file, a logger, a key of metadata.
NO_NAMES = {
    *("trionet.md", "trionet.service", "trionet.sqlite"),
    *("trionet.request", "trionet.options"),
}


def module_of(path: Path) -> str:
    home = next(home for home in HOMES if path.is_relative_to(home))
    parts = path.relative_to(home).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


SOURCES = {
    module_of(path): path
    for folder in ("trionet", "tests", "demo", "docs", ".ci")
    for path in sorted((ROOT / folder).rglob("*.py"))
}
STEMS = {path.stem for path in SOURCES.values()}
#: Also folders without an ``__init__``.
MODULES = {name[: found.start()] for name in SOURCES for found in re.finditer(r"\.|$", name)}
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


class Source:
    """A module as it is written.

    Attributes:
        defined: the names that it binds, in whatever scope, other than by imports.
        names: with those that it imports.
        homes: the modules that it imports names from.
        prose: its comments and docstrings, each with its line.
    """

    def __init__(self, module: str) -> None:
        self.defined: set[str] = set()
        self.names: set[str] = set()
        self.homes: set[str] = set()
        text = SOURCES[module].read_text("utf-8")
        lines = enumerate(text.splitlines(), 1)
        self.prose = [
            (number, found[0]) for number, line in lines if (found := COMMENT.search(line))
        ]
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                    self.defined.add(node.name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    self.defined.add(name)
                case ast.Import(names=aliases):
                    self.names |= {each.asname or each.name.split(".")[0] for each in aliases}
                case ast.ImportFrom(names=aliases):
                    self.names |= {each.asname or each.name for each in aliases}
                    self.homes.add(absolute(node.module or "", node.level, module))
                case ast.Expr(value=ast.Constant(value=str(docstring))):
                    self.prose.append((node.lineno, docstring))
        self.names |= self.defined


source = cache(Source)


@cache
def homes() -> dict[str, set[str]]:
    """The modules of the package that define each name."""
    found = defaultdict(set)
    for module in SOURCES:
        if module.startswith("trionet."):
            for name in source(module).defined:
                found[name].add(module)
    return found


def absolute(name: str, dots: int, module: str) -> str:
    """A module's name, as an import in ``module`` finds it."""
    if not dots:
        return name
    parts = module.split(".")
    is_package = SOURCES[module].name == "__init__.py"
    parts = parts[: len(parts) - dots + is_package]
    return ".".join([*parts, name]) if name else ".".join(parts)


def exists(role: str, target: str, module: str) -> bool:
    """Whether a module or a name is there that is referred to so in ``module``."""
    name = target.lstrip(".")
    dots = len(target) - len(name)
    if role == "mod":
        return absolute(name, dots, module) in MODULES or (not dots and locate(name) is not None)
    parts = name.split(".")
    for length in range(len(parts) - 1, 0, -1):
        if (home := absolute(".".join(parts[:length]), dots, module)) in SOURCES:
            return has(home, *parts[length:])
    if dots:
        return dots == 1 and any(has(home, *parts) for home in homes()[parts[0]])
    return has(module, *parts) or locate(name) is not None


def has(module: str, name: str, *members: str) -> bool:
    """Whether a module has a name, and a class of this name these members, inherited or not."""
    if name not in source(module).names:
        return False
    classes = {module, *homes()[name]}
    bases = {base for each in classes for base in source(each).homes if base in SOURCES}
    return all(any(each in source(home).names for home in classes | bases) for each in members)


@cache
def with_references() -> list[str]:
    """The modules to search: of the tests, which take longest to parse, only those with roles."""
    return [
        module
        for module, path in SOURCES.items()
        if not path.is_relative_to(ROOT / "tests")
        or (ROLE.search(path.read_text("utf-8")) and module != "test_references")
    ]


def references(pattern: re.Pattern[str]) -> Iterator[tuple[str, str, re.Match[str]]]:
    """Each place of a pattern, and the module that it is in, which is empty for a page."""
    texts = [("", path, 1, path.read_text("utf-8")) for path in PAGES]
    for module in with_references():
        texts += [(module, SOURCES[module], line, text) for line, text in source(module).prose]
    for module, path, first, text in texts:
        for found in pattern.finditer(text):
            line = first + text.count("\n", 0, found.start())
            yield f"\n{path.relative_to(ROOT)}:{line}: {found[0]}", module, found


@pytest.mark.slow
def test_roles_name_modules_and_names_that_exist() -> None:
    dead = [
        place
        for place, module, found in references(ROLE)
        if module and not exists(found["role"], re.sub(r"\s", "", found["target"]), module)
    ]

    assert not dead, "".join(dead)


@pytest.mark.slow
def test_dotted_names_exist() -> None:
    dead = [
        place
        for place, _, found in references(DOTTED)
        if found[1] not in MODULES | NO_NAMES and not exists("obj", found[1], "trionet")
    ]

    assert not dead, "".join(dead)


@pytest.mark.slow
def test_private_names_exist() -> None:
    dead = [
        place
        for place, module, found in references(PRIVATE)
        if module
        and found[1] not in STEMS
        and found[1] not in source(module).names
        and found[1] not in homes()
    ]

    assert not dead, "".join(dead)


@pytest.mark.slow
def test_files_exist() -> None:
    files = [f"/{path.relative_to(ROOT)}" for path in SOURCES.values()]
    dead = [
        place
        for place, _, found in references(FILE)
        if not (ROOT / found[1]).exists()
        and not any(each.endswith(f"/{found[1]}") for each in files)
    ]

    assert not dead, "".join(dead)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("role", "target", "is_there"),
    [
        ("mod", "trionet.net._selector", True),
        ("mod", "trionet.net.selector", False),
        ("mod", "._channel", True),
        ("mod", "..wire", False),
        ("mod", "..server._processor", True),
        ("mod", "time", True),
        ("class", "Selector", True),
        ("class", "Processor", False),
        ("class", ".Processor", True),
        ("meth", ".Processor.run_turn", True),
        ("meth", ".Processor.run_turns", False),
        ("meth", "poll", True),
        ("meth", "Selector.sleep", False),
        ("class", "trionet.net.Selector", True),
        ("class", "trionet.net._channel.Selector", False),
        ("data", ".wire._framing.UNLIMITED", True),
        ("data", "._framing.UNLIMITED", False),
        ("exc", "ValueError", True),
        ("class", "trio.Nursery", True),
        ("class", "trio.Nurseries", False),
    ],
)
def test_a_reference_to_nothing_is_seen(role: str, target: str, is_there: bool) -> None:
    assert is_there is exists(role, target, "trionet.net._selector")
