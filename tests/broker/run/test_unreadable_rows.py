"""A row of the database that is unreadable costs that row, and not the broker."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from support.brokers import broker_client
from support.calls import append, create_topic, describe_topics
from support.client import Client
from support.config_calls import BROKER, TOPIC, put, value_of
from support.group_calls import commit, committed, join_alone
from support.transaction_calls import commit_in, identity
from trionet.broker.storage._database import DATABASE_NAME
from trionet.protocol.error_codes import NONE
from trionet.protocol.messages.describe_groups import DescribeGroupsRequest
from trionet.protocol.messages.describe_transactions import DescribeTransactionsRequest

ROWS: Final = 12
"""As many as the widest table has columns: each column is damaged in a row of its own."""

SESSION_MS: Final = 1_800_000
CONFIGS: Final = {"retention_ms": 5_000_000_000, "flush_ms": 6}


async def fill(client: Client) -> None:
    """Rows to damage, and in each table one that stays as it is: `good`, the last one."""
    names = [*(f"{number}" for number in range(ROWS)), "good"]
    for name in (*names, "t"):
        await create_topic(client, name, **CONFIGS)
    for name in names:
        await join_alone(client, group=name, session_ms=SESSION_MS)
        producer = await identity(client, name)
        for codes in (
            await commit_in(client, producer, {"t": {0: 7}}, id=name, group=f"pending {name}"),
            await commit(client, {"t": {0: 5}}, group=f"simple {name}"),
        ):
            assert {("t", 0): NONE} == codes
    await put(client, BROKER, "", log_retention_ms=7_000_000, log_flush_interval_ms=5)
    await put(client, BROKER, "1", log_segment_bytes=7_000_000)


async def state_of(client: Client, group: str) -> tuple[int, str]:
    [described] = (await client.call(DescribeGroupsRequest(groups=[group]), 6)).groups
    return described.error_code, described.group_state


async def transaction_state(client: Client, id: str) -> str:
    request = DescribeTransactionsRequest(transactional_ids=[id])
    [described] = (await client.call(request, 0)).transaction_states
    state: str = described.transaction_state
    return state


def damage(path: Path, value: str) -> int:
    """Put a value into each column of each table, each time in another row."""
    done = 0
    with closing(sqlite3.connect(path)) as connection:
        good = connection.execute("SELECT id FROM topic WHERE name = 'good'").fetchone()
        kept = {"good", "simple good", "pending good", str(good[0])}
        tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (table,) in tables.fetchall():
            if table in ("schema_version", "producer_id_block"):
                continue
            columns = [each[1] for each in connection.execute(f"PRAGMA table_info({table})")]
            key = ", ".join(f'"{each}"' for each in columns)
            rows = connection.execute(f"SELECT {key} FROM {table}").fetchall()
            rows = [row for row in rows if not any(str(each) in kept for each in row[:2])]
            for column, row in zip(columns, rows, strict=False):
                match = " AND ".join(f'"{each}" IS ?' for each in columns)
                statement = f'UPDATE OR IGNORE {table} SET "{column}" = {value} WHERE {match}'
                try:
                    done += connection.execute(statement, row).rowcount
                except sqlite3.IntegrityError:
                    pass  # a value that the schema does not allow
        connection.commit()
    return done


@pytest.mark.slow
@pytest.mark.parametrize(
    "value", ["'abc'", "x'ff00'", "CAST(x'ff' AS TEXT)", "-5", str(2**62), "0.5", "NULL", "''"]
)
async def test_unreadable_rows_cost_those_rows(
    tmp_path: Path, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    async with broker_client(log_dirs=str(data)) as client:
        await fill(client)
    changed = damage(data / DATABASE_NAME, value)
    caplog.clear()

    async with broker_client(log_dirs=str(data)) as client:
        assert {("t", 0): 5} == await committed(client, group="simple good")
        assert (0, "Stable") == await state_of(client, "good")
        assert "Ongoing" == await transaction_state(client, "good")
        topics = {each.name: each.error_code for each in await describe_topics(client)}
        assert NONE == topics["good"]
        assert "5000000000" == (await value_of(client, TOPIC, "good", "retention.ms"))[0]
        await create_topic(client, "new")

    assert changed >= 4
    assert "unreadable" in caplog.text
    assert not [each for each in caplog.records if each.exc_info]


async def test_an_unreadable_topic_keeps_its_records_and_leaves_a_new_one_no_offsets(
    tmp_path: Path,
) -> None:
    """Even if it was not noted that its directories were created, as when that failed."""
    data = tmp_path / "data"
    async with broker_client(log_dirs=str(data)) as client:
        await create_topic(client, "t")
        await append(client, b"x")
        await commit(client, {"t": {0: 5}}, group="g")
    with closing(sqlite3.connect(data / DATABASE_NAME)) as connection:
        connection.execute("UPDATE topic SET partitions = 0")
        connection.execute("INSERT INTO unsettled_topic SELECT id, name, 0, 1 FROM topic")
        connection.commit()

    async with broker_client(log_dirs=str(data)) as client:
        [kept] = data.glob("t-0*")
        size = (kept / "00000000000000000000.log").stat().st_size
        await create_topic(client, "t")
        left = await committed(client, group="g")

    assert size > 0
    assert {} == left
