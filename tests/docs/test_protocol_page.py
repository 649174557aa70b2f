"""docs/protocol.md says of every API what the broker's table and the handler's docstring say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from protocol.generator.coverage import handler_docstring
from trionet import open_broker
from trionet.broker.api._dispatch import Api
from trionet.broker.run._served_apis import APIS
from trionet.protocol import api_keys

PAGE = Path(__file__).resolve().parents[2] / "docs" / "protocol.md"
ROW = re.compile(
    r"^\| \[(?P<name>\w+)\]\(#(?P<anchor>\w+)\) \| (?P<key>\d+) \| (?P<low>\d+) to (?P<high>\d+)"
    r" \|$",
    re.MULTILINE,
)
GAPS = re.compile(r"Gaps?: (.*?)(?:\n\n|$)", re.DOTALL)


async def served() -> list[Api]:
    async with open_broker() as broker:
        return list(broker._apis._apis.values())


def in_one_line(text: str) -> str:
    return " ".join(text.replace("``", "`").split())


def section(name: str) -> str:
    """The text about one API."""
    _, heading, rest = PAGE.read_text("utf-8").partition(f"\n## {name}\n")
    assert heading, f"{name} has no section"
    return rest.partition("\n## ")[0]


async def test_the_table_is_that_of_the_broker() -> None:
    expected = [
        (api_keys.name_of(api.key), api.key, api.min_version, api.max_version)
        for api in await served()
    ]

    listed = [
        (row["name"], int(row["key"]), int(row["low"]), int(row["high"]))
        for row in ROW.finditer(PAGE.read_text("utf-8"))
    ]

    assert expected == listed


async def test_every_api_that_is_said_not_to_be_served_is_none_of_them() -> None:
    text = PAGE.read_text("utf-8").partition("you are most likely to miss:")[2].partition("\n\n")[0]
    missing = re.findall(r"\w+", text)

    names = {api_keys.name_of(api.key) for api in await served()}
    known = {api_keys.name_of(key) for key in range(100)}

    assert set() == set(missing) & names
    assert set() == set(missing) - known


@pytest.mark.parametrize("api", [api.key for api in APIS], ids=api_keys.name_of)
def test_the_gaps_of_an_api_are_documented(api: int) -> None:
    gaps = [in_one_line(found) for found in GAPS.findall(handler_docstring(api))]

    shown = in_one_line(section(api_keys.name_of(api))) if gaps else ""

    assert [] == [gap for gap in gaps if gap not in shown]
