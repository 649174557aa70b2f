"""``trionet bench``: measure the speed of a cluster, or of the network layer alone."""

from __future__ import annotations

import argparse

from ..arguments._subcommands import Subcommands, run

__all__ = ["add_arguments", "run"]

_COMMANDS = Subcommands(
    {
        "produce": (
            "trionet.cli.bench._produce",
            "write records and time each until it is acknowledged",
        ),
        "consume": ("trionet.cli.bench._consume", "read records and measure their age"),
        "echo": (
            "trionet.cli.bench._echo",
            "time requests to the bare network layer or to any echo server",
        ),
    },
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments to ``parser``."""
    _COMMANDS.add_arguments(parser)
