"""The mutants: small changes of the network layer that some test has to notice.

They are data, in the TOML files beside this: which text of which file becomes which other text.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from conformance.numbers import names_by_number

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent.parent
PACKAGE = ROOT / "trionet"


@attrs.frozen
class Mutant:
    """One change.

    Attributes:
        name: names it on the command line.
        file: what it changes, below ``trionet``.
        find: the text that is changed; once in the file.
        replace: what takes its place.
        why: what it breaks.
        tests: paths or ids of those that are nearest to it, below ``tests``.
        lines: of the conformance list; a test that bears the number must fail.
    """

    name: str
    file: str
    find: str
    replace: str
    why: str
    tests: list[str]
    lines: list[str] = attrs.field(factory=list)

    @property
    def module(self) -> str:
        """What the file is imported as."""
        return ".".join(["trionet", *Path(self.file).with_suffix("").parts])

    def is_near(self, bearer: str) -> bool:
        """Whether a test is among those that are named, by itself or with its file or folder."""
        return any(
            bearer == test or bearer.startswith((f"{test}::", f"{test}/")) for test in self.tests
        )

    def apply(self, source: str) -> str:
        """The text of the file with the change.

        Raises:
            ValueError: what it changes is not there, or more than once.
        """
        count = source.count(self.find)
        if count != 1:
            raise ValueError(f"{self.file} has the text that {self.name} changes {count} times")
        return source.replace(self.find, self.replace)


def load(folder: Path = FOLDER) -> list[Mutant]:
    """All mutants, in the order of the files' names.

    Raises:
        TypeError: an entry has a field too many, or lacks one.
    """
    found: list[Mutant] = []
    for path in sorted(folder.glob("*.toml")):
        table: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
        found += [Mutant(**entry) for entry in table["mutant"]]
    return found


def complaints(mutants: Sequence[Mutant], package: Path = PACKAGE) -> list[str]:
    """What keeps mutants from being run, or from meaning anything."""
    names = [each.name for each in mutants]
    found = [f"{name}: several have this name" for name in set(names) if names.count(name) > 1]
    for each in mutants:
        found += [f"{each.name}: {what}" for what in _complaints(each, package)]
    return found


def _complaints(mutant: Mutant, package: Path) -> Iterator[str]:
    try:
        mutated = mutant.apply((package / mutant.file).read_text("utf-8"))
        ast.parse(mutated)
    except (OSError, SyntaxError, ValueError) as error:
        yield str(error)
        return
    if mutant.find == mutant.replace:
        yield "it changes nothing"
    if not mutant.tests:
        yield "no tests are named"
    for test in mutant.tests:
        if not _exists(test):
            yield f"there is no {test}"
    for line in mutant.lines:
        if not any(map(mutant.is_near, bearers(line))):
            yield f"no test that is named bears {line}"


def bearers(line: str) -> list[str]:
    """The tests that bear the number of a line, below ``tests``."""
    return names_by_number().get(line, [])


def _exists(test: str) -> bool:
    path, _, function = test.partition("::")
    place = ROOT / "tests" / path
    if not function:
        return place.exists()
    return place.is_file() and f"def {function}(" in place.read_text("utf-8")
