"""``trionet topics``: the topics of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Final

from ..arguments._parser import Subcommands, Verb, run
from . import _alter, _create, _delete, _describe, _list, _offsets, _producers, _trim

COMMANDS: Final = {
    "list": Verb("list topics", _list.add_arguments, _list.run),
    "describe": Verb(
        "show settings, partitions, leaders and offsets of topics",
        _describe.add_arguments,
        _describe.run,
    ),
    "create": Verb("create topics", _create.add_arguments, _create.run),
    "alter": Verb(
        "add partitions to topics or change their settings", _alter.add_arguments, _alter.run
    ),
    "delete": Verb("delete topics and all their records", _delete.add_arguments, _delete.run),
    "trim": Verb("delete the records before an offset or a time", _trim.add_arguments, _trim.run),
    "offsets": Verb(
        "show the start and end offsets of partitions, or the offsets at a time",
        _offsets.add_arguments,
        _offsets.run,
    ),
    "producers": Verb("show the producers of partitions", _producers.add_arguments, _producers.run),
}

add_arguments: Callable[[argparse.ArgumentParser], None] = Subcommands(COMMANDS).add_arguments

__all__ = ["COMMANDS", "add_arguments", "run"]
