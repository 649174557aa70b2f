"""Pictures of the dashboard: drawn whenever the site is built, of a broker that has work to do."""

from __future__ import annotations

import logging
import math
from typing import Any, Final

import trio

import trionet
from trionet.dashboard.drawing._cells import PICTURE
from trionet.dashboard.drawing._export import as_svg
from trionet.dashboard.drawing._themes import DARK
from trionet.dashboard.model._model import Model
from trionet.dashboard.sources._open_source import watch_broker
from trionet.dashboard.sources._source import Source
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.ui._view import View
from trionet.dashboard.views import all_views

#: The page that has the views, and where.
PAGE: Final = "dashboard"
PLACE: Final = "<!-- views -->\n"
COLUMNS: Final = 120
LINES: Final = 30
#: How long the broker works before it is looked at, and how long a view is looked at.
WORK_SECONDS: Final = 8.0
LOOK_SECONDS: Final = 1.0
INTERVAL_SECONDS: Final = 0.25


def put_views(_app: object, docname: str, content: list[str]) -> None:
    """Put a section for each view, with a picture, into the page that has a place for them."""
    if docname != PAGE:
        return
    before, place, after = content[0].partition(PLACE)
    if not place:
        raise ValueError(f"{PAGE}.md has no {PLACE}")
    # The log is for the pictures; Sphinx would print it.
    log = logging.getLogger("trionet")
    log.propagate = False
    log.setLevel(logging.INFO)
    log.addHandler(logging.NullHandler())
    sections = (section(view, svg) for view, svg in trio.run(pictures))
    content[0] = before + "".join(sections) + after


def section(view: View, svg: str) -> str:
    """The section of a view, in Markdown."""
    terms = "".join(f"| {title} | {meaning} |\n" for title, meaning in view.terms.items())
    table = f"| Column | Meaning |\n|---|---|\n{terms}\n" if terms else ""
    return f"## {view.title}\n\n{view.help}\n\n{table}```{{raw}} html\n{svg}\n```\n\n"


async def pictures() -> list[tuple[View, str]]:
    """All views with a tab, each with its picture as SVG."""
    async with trionet.open_broker(num_partitions=3) as broker, trio.open_nursery() as nursery:
        with watch_broker(broker) as source:
            model = Model()
            source.interval_seconds = INTERVAL_SECONDS
            await nursery.start(source.run, model)
            await work(nursery, broker.bootstrap_servers)
            await trio.sleep(WORK_SECONDS)
            found = [(view, await picture(source, model, view)) for view in all_views()]
            nursery.cancel_scope.cancel(reason="all are drawn")
    return found


async def picture(source: Source, model: Model, view: View) -> str:
    """A view as it is after a look."""
    source.focus(view.section, view.section_key)
    await trio.sleep(LOOK_SECONDS)
    ui = Ui(all_views(), view.name)
    frame = draw(ui, model, COLUMNS, LINES, PICTURE)
    return as_svg(frame, DARK, f"trionet dashboard: {view.name}", f"view-{view.name}")


async def work(nursery: trio.Nursery, servers: str) -> None:
    """Give the broker something to do: tills, baristas, an enquirer, and a stranger."""
    async with trionet.open_admin(servers) as admin:
        (await admin.create_topics(["orders", "invoices"])).checked()
    for number in range(3):
        nursery.start_soon(sell, servers, f"till-{number}")
    for number in range(2):
        nursery.start_soon(make, servers, f"barista-{number}")
    nursery.start_soon(ask, servers)
    nursery.start_soon(knock, servers)


async def sell(servers: str, name: str) -> None:
    """Send orders, now more and now fewer."""
    async with trionet.open_producer(servers, client_id=name) as producer:
        while True:
            rate = 300 + 200 * math.sin(trio.current_time())
            await producer.send("orders", b"one coffee, with milk, to go", key=name.encode())
            await producer.send("invoices", b"2.40")
            await trio.sleep(1 / rate)


async def make(servers: str, name: str) -> None:
    """Make orders, more slowly than they come."""
    async with trionet.open_consumer(
        servers,
        topics=["orders"],
        group_id="baristas",
        client_id=name,
        auto_offset_reset="earliest",
    ) as consumer:
        async for _ in consumer:
            await trio.sleep(0.004)


async def ask(servers: str) -> None:
    """Ask for what does not change, and for a topic that is not there."""
    async with trionet.open_admin(servers, client_id="night-watch") as admin:
        while True:
            await admin.describe_topics(["orders", "receipts"])
            await admin.list_groups()
            await trio.sleep(0.3)


async def knock(servers: str) -> None:
    """Speak another protocol now and then, and be shown out."""
    host, _, port = servers.rpartition(":")
    while True:
        async with await trio.open_tcp_stream(host, int(port)) as stream:
            await stream.send_all(b"GET / HTTP/1.1\r\n\r\n")
            await stream.receive_some()
        await trio.sleep(1.5)


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", put_views)
