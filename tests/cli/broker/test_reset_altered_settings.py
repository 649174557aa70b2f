"""``trionet broker --reset-altered-settings``: a way back for a broker that nobody reaches."""

from __future__ import annotations

from pathlib import Path

import pytest
import trio

from support.client import connect
from support.config_calls import BROKER, put
from trionet import open_broker
from trionet.cli.main import main

OPTION = "--reset-altered-settings"


async def let_nobody_in(data: Path) -> None:
    async with (
        open_broker(log_dir=str(data)) as broker,
        connect(broker.bootstrap_servers) as client,
    ):
        await put(client, BROKER, "1", max_connections=0)


def test_what_was_altered_is_forgotten_and_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trio.run(let_nobody_in, tmp_path)

    assert 0 == main(["broker", "--data", str(tmp_path), OPTION])
    assert "trionet broker: reset: broker 1: max.connections=0\n" == capsys.readouterr().out

    assert 0 == main(["broker", "--data", str(tmp_path), OPTION])
    assert "trionet broker: no altered settings to reset\n" == capsys.readouterr().out

    trio.run(let_nobody_in, tmp_path)  # somebody can connect again


def test_it_needs_the_folder_of_a_broker(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["broker", "--memory", OPTION])
    assert f"{OPTION} requires the broker's data directory" in capsys.readouterr().err

    assert 2 == main(["broker", "--data", str(tmp_path), OPTION])
    assert "there are no altered settings" in capsys.readouterr().err
