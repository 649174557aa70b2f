"""The tables of the reference have the rows that the code has."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
import pytest

from trionet.broker import BrokerStatistics
from trionet.metrics.loop import LoopStatistics
from trionet.net.close_reason import CloseReason
from trionet.server import ServerConfig, ServerStatistics

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table below a heading, without their code marks."""
    _, heading, rest = (REFERENCE / page).read_text("utf-8").partition(f"\n## {title}\n")
    assert heading, f"{page} has no section {title}"
    table = re.findall(r"^\| (`.*) \|$", rest.partition("\n## ")[0], re.MULTILINE)
    return [[cell.strip("`") for cell in row.split(" | ")] for row in table]


@pytest.mark.parametrize(
    ("page", "value"),
    [
        ("broker.md", BrokerStatistics),
        ("broker.md", LoopStatistics),
        ("server.md", ServerStatistics),
    ],
)
def test_every_field_of_a_value_is_explained(page: str, value: type[attrs.AttrsInstance]) -> None:
    explained = [name for name, _ in rows(page, f"`{value.__name__}`")]

    assert [field.name for field in attrs.fields(value)] == explained


def test_every_setting_of_the_server_is_explained_with_its_default() -> None:
    explained = [(name, default) for name, default, _ in rows("server.md", "`ServerConfig`")]

    expected = [(field.name, str(field.default)) for field in attrs.fields(ServerConfig)]

    assert expected == explained


def test_every_close_reason_is_explained() -> None:
    explained = [(name, meaning) for name, meaning in rows("net.md", "Close reasons")]

    assert [(reason.name, reason.value) for reason in CloseReason] == explained
