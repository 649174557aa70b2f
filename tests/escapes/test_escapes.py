"""No name that a stranger has chosen does anything to a terminal, or begins a line of a log.

A part of `python3 tests escapes`, which looks at every command.
"""

from __future__ import annotations

import sys

import pytest
import trio

from support.dashboard_model import full_model
from support.escapes import ON_THE_WIRE, PAYLOADS, leaks, terminal_output
from support.processes import SAME_TRIONET
from trionet import open_admin
from trionet.client._topic_partition import TopicPartition
from trionet.dashboard._once import whole_view
from trionet.dashboard.drawing._cells import UNICODE, Frame, Pen
from trionet.dashboard.drawing._export import as_csv, as_html, as_json, as_svg, as_text
from trionet.dashboard.ui._screen import draw
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.views import VIEWS, all_views
from trionet.errors import ApiError, DisconnectedError
from trionet.testing import broker as running_broker

TRIONET = [sys.executable, "-m", "trionet"]


def test_there_are_forty_attacks_and_each_is_seen() -> None:
    plain = [each for each in PAYLOADS if each.isprintable()]

    assert len(PAYLOADS) >= 40
    assert 4 == len(plain)  # markup
    assert all(leaks(each) for each in PAYLOADS if each not in plain)
    assert [] == leaks("".join(plain) + "\x1b[1mbold\x1b[0m\r\n")


@pytest.mark.slow
@pytest.mark.parametrize("view", [view.name for view in VIEWS])
def test_no_name_reaches_a_terminal_from_a_view_in_any_format(view: str) -> None:
    for name in ("".join(PAYLOADS[:24]), "".join(PAYLOADS[24:])):
        model, ui = full_model(name), Ui(all_views(), view)
        frame = draw(ui, model, 160, 40, UNICODE)
        pen = Pen(160, 40, UNICODE)
        shown = [as_text(frame), as_text(Frame(160, whole_view(ui.current, model, pen)))]
        shown += [as_svg(frame), as_html(frame)]
        if (table := ui.current.table) is not None and table.missing is None:
            shown += [as_json(table, ui.current.rows)]
            shown += [as_csv(table, ui.current.rows, is_terminal=True)]
        assert [[]] * len(shown) == [leaks(text) for text in shown]


@pytest.mark.parametrize("name", PAYLOADS, ids=ascii)
def test_no_name_begins_a_line_of_an_error(name: str) -> None:
    for error in (DisconnectedError(f"lost {name}"), ApiError(3, f"lost {name}")):
        assert [] == leaks(str(error))


@pytest.mark.slow
def test_no_id_reaches_a_real_terminal_as_it_is() -> None:
    with running_broker(topics={"orders": 1}) as broker:
        address = broker.bootstrap_servers
        trio.run(have_groups, address)
        for words in (
            ["groups", "list", "-b", address],
            ["dashboard", address, "--once", "--view", "groups", "--format", "csv"],
        ):
            shown = terminal_output([*TRIONET, *words], SAME_TRIONET)

            assert all(name[:3] in shown for name in ON_THE_WIRE)
            assert [] == leaks(shown)


async def have_groups(address: str) -> None:
    async with open_admin(address) as admin:
        for name in ON_THE_WIRE:
            (await admin.alter_group_offsets(name, {TopicPartition("orders", 0): 0})).checked()
