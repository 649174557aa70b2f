"""The tables of the reference have the rows that the code has."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import attrs
import pytest

from trionet import server
from trionet.broker import BrokerStatistics
from trionet.metrics._loop import LoopStatistics
from trionet.net.wire._close_reason import CloseReason
from trionet.server import (
    Dialect,
    ListenerLimits,
    ListenerSecurity,
    Request,
    Served,
    ServerConfig,
    ServerLimits,
    ServerStatistics,
    SocketServer,
    serve,
)
from trionet.server._closed_connections import ClosedConnection

REFERENCE = Path(__file__).resolve().parents[2] / "docs" / "reference"


def section(page: str, title: str) -> str:
    """What stands below a heading."""
    _, heading, rest = (REFERENCE / page).read_text("utf-8").partition(f"\n## {title}\n")
    assert heading, f"{page} has no section {title}"
    return rest.partition("\n## ")[0]


def rows(page: str, title: str) -> list[list[str]]:
    """The cells of the table below a heading, without their code marks."""
    table = re.findall(r"^\| (`.*) \|$", section(page, title), re.MULTILINE)
    return [[cell.strip("`") for cell in row.split(" | ")] for row in table]


@pytest.mark.parametrize(
    ("page", "value"),
    [
        ("broker.md", BrokerStatistics),
        ("broker.md", LoopStatistics),
        ("server.md", ServerStatistics),
        ("server.md", ClosedConnection),
    ],
)
def test_every_field_of_a_value_is_explained(page: str, value: type[attrs.AttrsInstance]) -> None:
    explained = [name for name, _ in rows(page, f"`{value.__name__}`")]

    assert [field.name for field in attrs.fields(value)] == explained


def default_of(field: attrs.Attribute[Any]) -> str:
    """A default as the page shows it: one that is made for each value by what makes it."""
    makes = getattr(field.default, "factory", None)
    if makes is None:
        return str(field.default)
    return "{}" if makes is dict else f"{makes.__name__}()"


@pytest.mark.parametrize("value", [ServerConfig, ServerLimits, ListenerLimits, ListenerSecurity])
def test_every_setting_of_the_server_is_explained_with_its_default(
    value: type[attrs.AttrsInstance],
) -> None:
    table = rows("server.md", f"`{value.__name__}`")
    explained = [(name, default) for name, default, _ in table]

    assert [(field.name, default_of(field)) for field in attrs.fields(value)] == explained


@pytest.mark.parametrize(
    ("function", "title"), [(serve, "`serve`"), (Dialect.length_prefixed, "`Dialect`")]
)
def test_every_argument_is_explained(function: Any, title: str) -> None:
    explained = [cells[0] for cells in rows("server.md", title)]

    assert list(inspect.signature(function).parameters) == explained


@pytest.mark.parametrize("value", [Served, SocketServer, Request])
def test_what_is_explained_of_a_class_is_there(value: type) -> None:
    explained = [cells[0] for cells in rows("server.md", f"`{value.__name__}`")]

    source = inspect.getsource(value)
    missing = [
        name
        for name, _, arguments in (cell.partition("(") for cell in explained)
        if not hasattr(value, name) and not re.search(rf"self\.{name}(: [^=]+)? = ", source)
    ]
    assert explained
    assert [] == missing


@pytest.mark.parametrize("value", [Served, Request])
def test_every_property_and_method_is_explained(value: type) -> None:
    explained = {cells[0].partition("(")[0] for cells in rows("server.md", f"`{value.__name__}`")}
    # Called by the handler pool alone.
    internal = {"set_response"}

    public = {
        name
        for name, member in vars(value).items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }

    assert set() == public - explained - internal


def test_every_name_of_the_server_is_in_its_table() -> None:
    table = (REFERENCE / "server.md").read_text("utf-8").partition("\n## ")[0]

    missing = [name for name in server.__all__ if f"`{name}" not in table]

    assert [] == [name for name in missing if name not in {"Endpoint", "FileRange", "Send"}]


def test_every_close_reason_is_explained() -> None:
    explained = [(name, meaning) for name, meaning in rows("net.md", "Close reasons")]

    assert [(reason.name, reason.value) for reason in CloseReason] == explained
