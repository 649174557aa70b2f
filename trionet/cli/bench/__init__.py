"""``trionet bench``: measure the speed of a cluster, or of the network layer alone."""

from __future__ import annotations

import argparse

from ..arguments._parser import Subcommands, Verb, run
from . import _consume, _echo, _produce

__all__ = ["add_arguments", "run"]

_COMMANDS = Subcommands(
    {
        "produce": Verb(
            "write records and time each until it is acknowledged",
            _produce.add_arguments,
            _produce.run,
        ),
        "consume": Verb("read records and measure their age", _consume.add_arguments, _consume.run),
        "echo": Verb(
            "time requests to the bare network layer or to any echo server",
            _echo.add_arguments,
            _echo.run,
        ),
    },
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    _COMMANDS.add_arguments(parser)
