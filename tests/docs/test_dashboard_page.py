"""The page about the dashboard names every option, key and command that there is."""

from __future__ import annotations

import argparse
import itertools
import re
from pathlib import Path

from trionet.cli import _dashboard as dashboard
from trionet.cli.clients._connection import add_connection_arguments
from trionet.dashboard.ui._help import KEYS
from trionet.dashboard.ui._key_handler import Commands
from trionet.dashboard.ui._ui import Ui
from trionet.dashboard.views import all_views

PAGE = Path(__file__).parents[2] / "docs/reference/dashboard.md"
TEXT = PAGE.read_text("utf-8")
#: Options that many commands have, which stand on another page.
SHARED = argparse.ArgumentParser(add_help=False)
add_connection_arguments(SHARED)


def options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def rows(heading: str) -> str:
    """The table below the line that begins so."""
    return TEXT.partition(f"\n| {heading} |")[2].partition("\n\n")[0]


def test_every_option_is_reported() -> None:
    parser = argparse.ArgumentParser(add_help=False)
    dashboard.add_arguments(parser)

    names = "".join(re.findall(r"^\| (`--.*?) \|", rows("Option"), re.MULTILINE))
    told = set(re.findall(r"`(--[\w-]+)", names))

    assert options(parser) - options(SHARED) == told


def test_every_key_is_reported() -> None:
    told = rows("Key").replace("`` ` ``", "`")

    for keys, _ in itertools.chain(*KEYS):
        for key in keys.replace(",", "").replace("arrows", "").split():
            assert f"`{key}`" in told or key == "`", key


def test_every_command_is_reported() -> None:
    ui = Ui(all_views(), "overview")
    views = {view.name for view in ui.views}
    told = rows("Command")

    for name in Commands(ui).names():
        if name not in views:
            assert f"`:{name}" in told


def test_every_form_is_reported() -> None:
    told = rows("Option")

    for form in dashboard.FORMATS:
        assert f"`{form}`" in told
