from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import pytest
import trio
from rich.segment import Segment

from support.calls import create_topic
from support.client import connect
from support.ports import free_ports
from trionet import open_broker, open_producer, testing
from trionet.dashboard import _once as once
from trionet.dashboard._once import (
    NoDataError,
    NotATableError,
    OnceOptions,
    render_once,
    roll,
    whole_view,
)
from trionet.dashboard.drawing._cells import ASCII, UNICODE, Glyphs, Line, Pen
from trionet.dashboard.model._figures import FIGURES
from trionet.dashboard.model._model import Model
from trionet.dashboard.sources._open_source import open_remote, watch_broker
from trionet.dashboard.sources._source import Source
from trionet.dashboard.ui._view import View
from trionet.dashboard.ui._view_state import ViewState

pytestmark = pytest.mark.slow


@asynccontextmanager
async def watched() -> AsyncIterator[Source]:
    """A broker with one topic."""
    async with open_broker() as broker, connect(broker.bootstrap_servers, "billing") as client:
        await create_topic(client, "orders", partitions=3)
        with watch_broker(broker) as source:
            yield source


async def test_a_look_at_a_table_has_all_its_rows() -> None:
    async with watched() as source:
        text = await render_once(source, OnceOptions(view="connections", width=100))
        rows = json.loads(
            await render_once(source, OnceOptions("connections", "json", filter="billing"))
        )

    assert text.startswith(" PEER ")
    assert " billing " in text
    assert ["billing"] == [row["client_id"] for row in rows]


async def test_rates_are_known_because_it_looks_twice() -> None:
    async with watched() as source:
        page = await render_once(source, OnceOptions(form="html", width=90, ascii=True))

    assert page.isascii()
    assert re.search(r"requests .*\d/s", page)


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
async def test_lines_that_are_cut_end_with_a_mark(glyphs: Glyphs) -> None:
    class Long(View):
        name = title = help = "long"

        def lines(self, model: Model, pen: Pen) -> list[Line]:
            return [[Segment("word " * 10)]]

    [line] = whole_view(ViewState(Long()), Model(), Pen(40, 40, glyphs))

    assert "".join(segment.text for segment in line).endswith(f"word{glyphs.ellipsis}")


async def test_lines_are_no_table() -> None:
    async with watched() as source:
        with pytest.raises(NotATableError, match="--filter: the view overview has no rows"):
            await render_once(source, OnceOptions(filter="orders"))
        with pytest.raises(NotATableError, match="--format json: the view overview has no table"):
            await render_once(source, OnceOptions(form="json"))


async def test_what_is_not_reported_is_said_so() -> None:
    async with (
        open_broker(metrics_local_enable=False) as broker,
        open_remote(broker.bootstrap_servers) as source,
    ):
        with pytest.raises(NoDataError, match="not available over the Kafka protocol"):
            await render_once(source, OnceOptions(view="connections"))


async def test_the_overview_of_other_brokers_has_the_rate_of_records() -> None:
    async with (
        open_broker(metrics_local_enable=False) as broker,
        connect(broker.bootstrap_servers, "billing") as client,
        open_remote(broker.bootstrap_servers) as source,
    ):
        await create_topic(client, "orders", partitions=3)
        text = await render_once(source, OnceOptions())

    assert re.search(r"records .*0/s", text)
    assert re.search(r"^ orders +3 ", text, re.MULTILINE)


async def test_a_table_without_rows_says_what_makes_some_come() -> None:
    async with open_broker() as broker, open_remote(broker.bootstrap_servers) as source:
        text = await render_once(source, OnceOptions(view="groups"))
        rows = await render_once(source, OnceOptions(view="groups", form="json"))

    assert "trionet consume TOPIC -g GROUP" in text
    assert [] == json.loads(rows)


async def test_where_nothing_listens_it_is_said_within_seconds() -> None:
    [port] = free_ports(1)
    address = f"127.0.0.1:{port}"
    async with open_remote(address) as source:
        with pytest.raises(NoDataError, match=rf"^nothing listens at {address} \(connection ref"):
            await render_once(source, OnceOptions(view="topics"))


KEY = '{"kind":"windows","window":"2026-11-22T11:%02d:00Z"}'


async def write_minutes(bootstrap_servers: str, minutes: int, padding: int) -> None:
    """Results as the pipeline writes them, each a batch of its own, which are read one by one."""
    async with open_producer(bootstrap_servers, batch_size=0) as producer:
        await producer.send("log", b"x")
        for minute in range(minutes):
            value = json.dumps({"requests": minute, "padding": "x" * padding}).encode()
            await producer.send("log-results", value, key=(KEY % minute).encode())


async def test_all_minutes_of_the_pipeline_are_read_before_it_is_printed() -> None:
    async with open_broker() as broker:
        await write_minutes(broker.bootstrap_servers, 45, 30_000)
        async with open_remote(broker.bootstrap_servers) as source:
            document = await render_once(source, OnceOptions(view="pipeline", form="json"))
            text = await render_once(source, OnceOptions(view="pipeline"))

    assert list(range(45)) == sorted(row["requests"] for row in json.loads(document))
    assert "log-results: 45 minutes" in text


async def test_incidents_of_the_pipeline_are_a_table_for_programs() -> None:
    """The view of the minutes only counts them, and a program cannot press a key to open it."""
    incident = {"incident": "i", "state": "open", "start": "2026-11-22T11:00:00Z", "api": "Produce"}
    key = {"kind": "incidents", "window": "2026-11-22T11:00:00Z", "incident": "i"}
    async with open_broker() as broker:
        await write_minutes(broker.bootstrap_servers, 1, 0)
        async with open_producer(broker.bootstrap_servers) as producer:
            value = json.dumps(incident).encode()
            await producer.send("log-results", value, key=json.dumps(key).encode())
        async with open_remote(broker.bootstrap_servers) as source:
            [row] = json.loads(await render_once(source, OnceOptions("incidents", "json")))
            assert [] == json.loads(await render_once(source, OnceOptions("anomalies", "json")))

    assert incident.items() <= row.items()


async def test_a_record_that_is_no_result_does_not_end_it() -> None:
    """Anyone who may produce to the topic can put it there, where it stays for days."""
    async with open_broker() as broker:
        await write_minutes(broker.bootstrap_servers, 2, 0)
        async with open_producer(broker.bootstrap_servers) as producer:
            for window in ("[1]", "5", "null", '"x"'):
                key = f'{{"kind":"windows","window":{window}}}'.encode()
                await producer.send("log-results", b'{"requests":7,"errors":0}', key=key)
        async with open_remote(broker.bootstrap_servers) as source:
            document = await render_once(source, OnceOptions(view="pipeline", form="json"))
            text = await render_once(source, OnceOptions(view="pipeline"))
            page = await render_once(source, OnceOptions(view="pipeline", form="html"))

    assert [0, 1] == sorted(row["requests"] for row in json.loads(document))
    assert "! 4 malformed records not shown" in text
    assert "4 malformed records" in page


@pytest.mark.parametrize(
    "body", ["[" * 200_000, '{"version":1,"now":1' + "0" * 4000 + "}"], ids=["deep", "large"]
)
async def test_a_metrics_server_that_sends_something_else_does_not_end_it(body: str) -> None:
    async def respond(stream: trio.SocketStream) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        with stream.socket:
            await stream.receive_some(10_000)
            await stream.send_all((head + body).encode())

    async with open_broker() as broker, trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, respond, 0, host="127.0.0.1")
        [listener] = await nursery.start(serve)
        url = f"http://127.0.0.1:{listener.socket.getsockname()[1]}"
        async with open_remote(broker.bootstrap_servers, metrics_url=url) as source:
            text = await render_once(source, OnceOptions(view="topics"))
            with pytest.raises(NoDataError, match="could not be read"):
                await render_once(source, OnceOptions(view="connections", form="json"))
        nursery.cancel_scope.cancel()

    assert "TOPIC" in text


async def test_a_part_of_the_minutes_is_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "WAIT_SECONDS", 5.0)
    with testing.broker() as broker:
        await write_minutes(broker.bootstrap_servers, 3, 10)
        broker.faults.hold("Fetch")
        async with open_remote(broker.bootstrap_servers) as source:
            with pytest.raises(NoDataError, match=r"3 records of log-results were not read"):
                await render_once(source, OnceOptions(view="pipeline", form="json"))


async def test_lines_of_numbers() -> None:
    out = {form: io.StringIO() for form in ("text", "json", "csv")}
    async with watched() as source:
        for form, stream in out.items():
            await roll(source, 0.2, 2, form, stream, pytest.fail)

    # Headings come again when there is more to be reported, such as rates after the second look.
    texts = out["text"].getvalue().splitlines()
    assert texts[0].startswith("TIME")
    assert "CONNS" in texts[0]
    assert 2 == sum(not text.startswith("TIME") for text in texts)
    assert len(texts[-1]) == len([text for text in texts if text.startswith("TIME")][-1])
    documents = [json.loads(line) for line in out["json"].getvalue().splitlines()]
    assert [1, 1] == [document["topics"] for document in documents]
    table = list(csv.DictReader(io.StringIO(out["csv"].getvalue())))
    assert ["time", *FIGURES] == list(table[0])
    assert ["3.0", "3.0"] == [f"{float(row['partitions'])}" for row in table]


async def test_lines_about_a_cluster_that_cannot_be_read_end_in_an_error() -> None:
    out, reported = io.StringIO(), list[str]()
    async with open_remote("127.0.0.1:1") as source:
        with pytest.raises(NoDataError) as failed:
            await roll(source, 0.2, 2, "text", out, reported.append)

    assert [str(failed.value)] == reported
    assert all(line.startswith("TIME") or line[2] == ":" for line in out.getvalue().splitlines())


@pytest.mark.parametrize("form", ["text", "json", "csv", "svg"])
async def test_a_view_without_data_is_an_error_in_each_form(form: str) -> None:
    async with open_broker() as broker, open_remote(broker.bootstrap_servers) as source:
        with pytest.raises(NoDataError, match="pipeline"):
            await render_once(source, OnceOptions(view="pipeline", form=form))
