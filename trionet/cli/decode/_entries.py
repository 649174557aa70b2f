"""Decodes sources and yields the selected entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from ._conversation import Conversation, Expected
from .input._source import Kind, Source
from .input._split import RawEntry, split
from .messages._allowance import Allowance
from .messages._batches import batch_tree
from .messages._tree import Entry, Problem, first_problem


class Selection(NamedTuple):
    """The entries to show.

    Attributes:
        expected: the API and version of all frames, if given.
        api_keys: the keys of the APIs whose frames are shown; empty for all.
        skip: the number of entries to skip.
    """

    expected: Expected | None = None
    api_keys: frozenset[int] = frozenset()
    skip: int = 0


def entries(sources: Iterable[tuple[Source, Kind]], selection: Selection) -> Iterator[Entry]:
    """Yield the selected entries of all sources in order.

    The request for a response may be in an earlier source.
    """
    conversation = Conversation(selection.expected)
    skip = selection.skip
    numbers = count(1)
    for source, kind in sources:
        for number, raw in zip(numbers, split(source, kind), strict=False):
            entry = None
            if kind is not Kind.BATCHES:
                entry = conversation.entry(number, source.name, raw)
                if selection.api_keys and entry.about.get("api_key") not in selection.api_keys:
                    continue
            if skip:
                skip -= 1
                continue
            yield entry or _batch_entry(number, source.name, raw)


def _batch_entry(number: int, source: str, raw: RawEntry) -> Entry:
    body, problem = ({}, "") if raw.problem else batch_tree(raw.data, raw.missing, Allowance())
    problem = raw.problem or problem or first_problem(body)
    return Entry(
        number,
        source,
        raw.offset,
        len(raw.data),
        "batch",
        {},
        None,
        body,
        Problem(problem, raw.start) if problem else None,
    )
