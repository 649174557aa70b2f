"""Frames that something has changed: a few of the million of `python3 tests jafka`."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from jafka.__main__ import run
from support.leaks import nothing_left_behind


@pytest.mark.slow
async def test_changed_frames_break_nothing(tmp_path: Path) -> None:
    logging.getLogger("trionet.jafka").setLevel(logging.ERROR)
    try:
        with nothing_left_behind():
            await run(3_000, "gate", tmp_path)
    finally:
        logging.getLogger("trionet.jafka").setLevel(logging.NOTSET)
