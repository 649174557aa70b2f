"""docs/reference/testing.md speaks of every word that tests may say."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import attrs
import pytest

import trionet
from docs.test_reference_pages import rows
from trionet.testing import (
    BlockingRawPeer,
    ConnectionView,
    Fault,
    Faults,
    GroupView,
    RawPeer,
    Record,
    SeenRequest,
    ThreadedBroker,
    TransactionView,
    plugin,
)
from trionet.testing.faults._faults import FaultOptions

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "reference" / "testing.md").read_text("utf-8")
FAULTS_PAGE = (DOCS / "howto" / "test-error-handling.md").read_text("utf-8")


def words(cls: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(cls) if not name.startswith("_")]


@pytest.mark.parametrize("name", trionet.testing.__all__)
def test_every_name_is_explained(name: str) -> None:
    assert re.search(rf"`{name}\b", PAGE), name


@pytest.mark.parametrize("cls", [ThreadedBroker, RawPeer, BlockingRawPeer, Faults, Fault])
def test_every_word_is_explained(cls: type) -> None:
    missing = [
        name for name in words(cls) if not re.search(rf"`{name}\b", PAGE) and name not in INSIDE
    ]

    assert [] == missing


# What is no word of a user's.
INSIDE = {
    "act",
    "block",
    "explain",
    "raise_error",
    "raise_errors",
    "remove_now",
    "is_removed",
    "which",
}


@pytest.mark.parametrize("cls", [SeenRequest, GroupView, TransactionView, ConnectionView, Record])
def test_every_field_is_explained(cls: type) -> None:
    explained = {
        name.strip("`")
        for names, _ in rows("testing.md", f"`{cls.__name__}`")
        for name in names.split(", ")
    }

    # A named tuple, or a class of attrs.
    fields = getattr(cls, "_fields", None) or [field.name for field in attrs.fields(cls)]
    assert set(fields) <= explained <= {*fields, *words(cls)}


def test_every_fixture_is_explained() -> None:
    fixtures = [name for name in vars(plugin) if name.startswith("trionet_")]

    assert len(fixtures) > 5
    assert [] == [name for name in fixtures if f"`{name}`" not in PAGE]


def test_every_argument_of_a_fault_is_explained() -> None:
    assert [] == [name for name in FaultOptions.__annotations__ if f"`{name}`" not in FAULTS_PAGE]
