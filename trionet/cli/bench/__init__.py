"""``trionet bench``: how fast a cluster, or the network layer by itself, is."""

from __future__ import annotations

import argparse

from ..arguments._subcommands import Subcommands, run

__all__ = ["add_arguments", "run"]

_COMMANDS = Subcommands(
    {
        "produce": ("bench._produce", "write records, and time each until it is acknowledged"),
        "consume": ("bench._consume", "read records, and see how old they are"),
        "echo": ("bench._echo", "time requests to the bare network layer, or to any echo server"),
    },
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the command's arguments to ``parser``."""
    _COMMANDS.add_arguments(parser)
