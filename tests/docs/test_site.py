"""What `python3 docs` makes a site of: every page has its place there, and every public name."""

from __future__ import annotations

import re
from pathlib import Path

import trionet
import trionet.testing

DOCS = Path(__file__).resolve().parents[2] / "docs"
#: The index of who reads the folder as it is; the site's includes it.
INDEX_OF_FOLDER = "README"


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


def documented(module: str) -> list[str]:
    """The names of a module that have a directive of autodoc."""
    found = []
    for page in sorted((DOCS / "api").glob("*.rst")):
        current = ""
        for line in page.read_text("utf-8").splitlines():
            if line.startswith(".. currentmodule:: "):
                current = line.rpartition(" ")[2]
            elif (name := re.match(r"\.\. auto\w+:: (\w+)", line)) and current == module:
                found.append(name[1])
    return found


def test_every_public_name_has_its_docstring_on_the_site_once() -> None:
    assert sorted(trionet.__all__) == sorted(documented("trionet"))
    assert sorted(trionet.testing.__all__) == sorted(documented("trionet.testing"))
