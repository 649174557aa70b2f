"""docs/design.md speaks of files and sections that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "design.md").read_text("utf-8")


def test_every_path_exists() -> None:
    paths = re.findall(r"`((?:trionet|tests|demo)/[\w/.]*)`", PAGE)

    missing = [path for path in paths if not (ROOT / path).exists()]

    assert len(paths) > 30
    assert [] == missing


def test_every_room_of_the_package_is_on_the_map() -> None:
    rooms = [path.parent.relative_to(ROOT) for path in (ROOT / "trionet").rglob("*/__init__.py")]

    missing = [
        room.as_posix()
        for room in rooms
        if f"| `{room.as_posix()}/` |" not in PAGE and "messages" not in room.parts
    ]

    assert [] == missing


def test_every_dependency_is_named() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    text = PAGE.partition("### 3.10 ")[2].partition("\n#")[0]

    dependencies = {re.split(r"\W", line)[0] for line in project["dependencies"]}

    assert dependencies == set(re.findall(r"`(\w+)`", text))


def test_every_folder_of_the_package_is_in_the_house() -> None:
    house = PAGE.partition("## 2. The house")[2].partition("## 3.")[0]

    folders = {path.parent.name for path in (ROOT / "trionet").glob("*/__init__.py")}
    on_a_level = set(
        re.findall(r"[a-z_]+", " ".join(re.findall(r"^level \d(.*)$", house, re.MULTILINE)))
    )

    assert folders | {"errors", "_util"} == on_a_level


def test_what_stands_for_words_of_kafka_exists() -> None:
    table = PAGE.partition("## 5. Kafka's words")[2].partition("\n## ")[0]
    cells = re.findall(r"^\|[^|]+\|([^|]+)\|", table, re.MULTILINE)
    names = {name for cell in cells for name in re.findall(r"`(?:\w+\.)?(\w+)`", cell)}
    sources = [path.read_text("utf-8") for path in (ROOT / "trionet").rglob("*.py")]

    text = "\n".join(sources)
    defined = set(re.findall(r"\b(?:class|def) (\w+)", text))
    defined |= set(re.findall(r"\bself\.(\w+)\b.* = ", text))
    defined |= set(re.findall(r"^ *([A-Z_]+)\b.* = ", text, re.MULTILINE))  # constants, members

    assert len(names) > 20
    assert set() == names - defined


def test_comments_refer_to_sections_that_exist() -> None:
    headings = set(re.findall(r"^#+ (\d(?:\.\d)?)\b", PAGE, re.MULTILINE))
    sources = [path.read_text("utf-8") for path in (ROOT / "trionet").rglob("*.py")]

    named = {number for text in sources for number in re.findall(r"design (\d\.\d)", text)}

    assert set() == named - headings
