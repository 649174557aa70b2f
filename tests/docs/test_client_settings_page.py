"""docs/reference/client-settings.md names every key of the clients, with its default."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trionet.client.config._keys import (
    ADMIN,
    CLIENTS,
    COMMON,
    CONSUMER,
    KAFKAS_NAME,
    OF_LIBRDKAFKA,
    OURS,
    PRODUCER,
    SECURITY,
)
from trionet.protocol._config_types import Row, value_text

WITHOUT_EFFECT = {each.client: each.without_effect.values() for each in CLIENTS}
UNSUPPORTED = {each.client: each.unsupported.values() for each in CLIENTS}
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "client-settings.md"
ROW = re.compile(
    r"^\| `(?P<key>[a-z0-9.]+)` \| (?:`(?P<default>[^`]*)` )?\| \S.* \|$", re.MULTILINE
)


def section(title: str) -> str:
    """What stands between a heading and the next one."""
    _, heading, rest = PAGE.read_text("utf-8").partition(f"\n## {title}\n")
    assert heading, title
    return rest.partition("\n## ")[0]


def cells(title: str) -> list[list[str]]:
    """The cells of the rows of the table below a heading."""
    rows = re.findall(r"^\| (`.*) \|$", section(title), re.MULTILINE)
    return [[cell.strip("` ") for cell in row.split(" |")] for row in rows]


@pytest.mark.parametrize(
    ("title", "rows"),
    [
        ("All clients", (*COMMON, *OURS)),
        ("Security", (*SECURITY, *OF_LIBRDKAFKA)),
        ("Producers", PRODUCER),
        ("Consumers", CONSUMER),
        ("Admin clients", ADMIN),
    ],
)
def test_a_table_of_applied_keys_is_that_of_the_code(title: str, rows: tuple[Row, ...]) -> None:
    listed = [(found["key"], found["default"]) for found in ROW.finditer(section(title))]

    assert sorted((key, value_text(default)) for key, _, default, _ in rows) == listed


def _of(clients: list[str]) -> str:
    everybody = len(clients) == len(CLIENTS)
    return "all" if everybody else ", ".join(f"{client}s" for client in clients)


def test_what_has_no_meaning_is_listed_with_whose_it_is() -> None:
    keys = {row[0] for rows in WITHOUT_EFFECT.values() for row in rows}
    expected = [
        [key, _of([of for of, rows in WITHOUT_EFFECT.items() if key in {row[0] for row in rows}])]
        for key in sorted(keys)
    ]

    assert expected == cells("Without meaning")


def test_what_is_refused_is_listed_with_what_to_do() -> None:
    refusals = {each.row[0]: each for of in UNSUPPORTED.values() for each in of}
    expected = [
        [
            key,
            _of([of for of, each in UNSUPPORTED.items() if key in {one.row[0] for one in each}]),
            "`, `".join(
                text for each in (refusal.row[2], *refusal.harmless) if (text := value_text(each))
            ),
            refusal.advice,
        ]
        for key, refusal in sorted(refusals.items())
    ]

    assert expected == cells("Refused")


def test_names_of_librdkafka_are_listed_with_kafkas() -> None:
    assert [list(pair) for pair in KAFKAS_NAME.items()] == cells("Names of librdkafka")
