"""Tables: what is written can be read, and what cannot be read costs one row."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from trionet.broker.storage._database import IN_MEMORY, Database, DatabaseError, open_database
from trionet.broker.storage._tables import (
    BLOB,
    INT32,
    INT64,
    TEXT,
    UINT31,
    UINT63,
    WARNINGS_MAX,
    Column,
    Fields,
    Table,
    blob_of,
    integer,
    nullable,
    one_of,
    real,
)

TABLE = Table("topic_config", 2, Fields(topic_id=blob_of(2), name=TEXT, value=one_of({"a", "b"})))


@pytest.fixture
async def database() -> AsyncIterator[Database]:
    async with open_database(IN_MEMORY) as database:
        await database.transaction(lambda each: each.execute("PRAGMA defer_foreign_keys = ON"))
        yield database


async def write(database: Database, *rows: Any, checked: bool = True) -> None:
    def work(connection: Any) -> None:
        connection.execute("INSERT OR IGNORE INTO topic VALUES (x'0000', 't', 1)")
        if checked:
            TABLE.put(connection, rows)
        else:
            connection.executemany("INSERT INTO topic_config VALUES (?, ?, ?)", rows)

    await database.transaction(work)


async def read(database: Database) -> list[tuple[Any, ...]]:
    return await database.transaction(lambda each: list(TABLE.read(each, lambda *row: row)))


@pytest.mark.parametrize(
    ("column", "allowed", "others"),
    [
        (INT32, [-(2**31), -2, 0, 2**31 - 1], [-(2**31) - 1, 2**31, "1", 1.0, True, None, b""]),
        (INT64, [-(2**63), 2**63 - 1], ["", None, True]),
        (UINT31, [0, 2**31 - 1], [-1, 2**31]),
        (UINT63, [0, 2**63 - 1], [-1, 2**63]),
        (integer(1, 2), [1, 2], [0, 3]),
        (real(-1, 2.5), [-1, 0, 2.5], [-2, 2.6, float("nan"), float("inf"), "1", True, None]),
        (TEXT, ["", "\0", "ä📎"], [b"", 1, None]),
        (BLOB, [b"", b"\0"], ["", None, 1]),
        (blob_of(2), [b"ab"], [b"a", b"abc", "ab", None]),
        (one_of({"a"}), ["a"], ["b", b"a", None]),
        (nullable(INT32), [None, 5], ["5", 2**31]),
    ],
)
def test_what_columns_may_contain(
    column: Column, allowed: list[object], others: list[object]
) -> None:
    fields = Fields(field=column)
    for value in allowed:
        assert [value] == fields.checked([value])
    for value in others:
        with pytest.raises(DatabaseError, match="field: "):
            fields.checked([value])


async def test_what_is_put_is_read(database: Database) -> None:
    rows = [(b"\0\0", "x", "a"), (b"\0\0", "y", "b")]
    await write(database, *rows)
    await write(database, (b"\0\0", "x", "b"))

    assert [(b"\0\0", "x", "b"), rows[1]] == await read(database)


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ((b"\0", "x", "a"), "topic_id: 1 bytes; expected 2"),
        ((b"\0\0", None, "a"), "name: None is not text"),
        ((b"\0\0", "x", "c"), "value: 'c' is not one of a, b"),
        ((b"\0\0", "x"), "2 values; expected 3"),
        ((b"\0\0", "\ud800", "a"), "surrogates not allowed"),
    ],
)
async def test_what_could_not_be_read_is_not_put(
    database: Database, row: tuple[object, ...], what: str
) -> None:
    with pytest.raises(DatabaseError, match=what):
        await write(database, (b"\0\0", "good", "a"), row)

    assert [] == await read(database)


async def test_an_unreadable_row_is_ignored_and_only_its_key_is_logged(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    good = (b"\0\0", "good", "a")
    await write(database, (b"\0\0", 5, "secret"), good, checked=False)

    assert [good] == await read(database)

    [line] = caplog.messages
    assert line.startswith("ignoring an unreadable row of the database, in table topic_config: ")


async def test_many_unreadable_rows_are_counted(
    database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    rows = [(b"\0\0", str(number), "c") for number in range(WARNINGS_MAX + 5)]
    await write(database, *rows, checked=False)

    assert [] == await read(database)

    assert WARNINGS_MAX + 1 == len(caplog.messages)
    assert "ignoring 15 unreadable rows of table topic_config" == caplog.messages[-1]
    assert {logging.WARNING} == {each.levelno for each in caplog.records}


async def test_what_cannot_be_made_of_a_row_costs_that_row(database: Database) -> None:
    await write(database, (b"\0\0", "5", "a"), (b"\0\0", "five", "b"))

    def read_numbers(connection: Any) -> list[int]:
        return list(TABLE.read(connection, lambda _id, name, _value: int(name)))

    assert [5] == await database.transaction(read_numbers)


async def test_text_that_is_not_utf_8_costs_that_row(database: Database) -> None:
    good = (b"\0\0", "good", "a")
    await write(database, good)
    statement = "INSERT INTO topic_config VALUES (x'0000', CAST(x'ff' AS TEXT), 'a')"
    await database.transaction(lambda each: each.execute(statement))

    assert [good] == await read(database)
