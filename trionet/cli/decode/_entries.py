"""Sources to entries, those that are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from ._conversation import Conversation, Expected
from .input._forms import Kind
from .input._source import Source
from .input._split import Piece, pieces
from .messages._allowance import Allowance
from .messages._batches import batch_tree
from .messages._tree import Entry, Problem, first_problem


class Selection(NamedTuple):
    """What is asked for.

    Attributes:
        expected: what all frames are, if that was said.
        api_keys: the APIs whose frames are shown; all if empty.
        skip: how many of them are left out first.
    """

    expected: Expected | None = None
    api_keys: frozenset[int] = frozenset()
    skip: int = 0


def entries(sources: Iterable[tuple[Source, Kind]], selection: Selection) -> Iterator[Entry]:
    """The entries of all sources, one after the other; requests of one are known in the next."""
    conversation = Conversation(selection.expected)
    skip = selection.skip
    numbers = count(1)
    for source, kind in sources:
        for number, piece in zip(numbers, pieces(source, kind), strict=False):
            entry = None
            if kind is not Kind.BATCHES:
                entry = conversation.entry(number, source.name, piece)
                if selection.api_keys and entry.about.get("api_key") not in selection.api_keys:
                    continue
            if skip:
                skip -= 1
                continue
            yield entry or _batch_entry(number, source.name, piece)


def _batch_entry(number: int, source: str, piece: Piece) -> Entry:
    body, problem = (
        ({}, "") if piece.problem else batch_tree(piece.data, piece.missing, Allowance())
    )
    problem = piece.problem or problem or first_problem(body)
    return Entry(
        number,
        source,
        piece.offset,
        len(piece.data),
        "batch",
        {},
        None,
        body,
        Problem(problem, piece.start) if problem else None,
    )
