"""The values between reading and showing: plain Python, and two that say more than it does.

Whatever is shown of bytes came from a stranger. Nothing here is fit for a terminal: ``lines`` and
``documents`` see to that.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias


class Meant(NamedTuple):
    """A number that stands for something.

    Attributes:
        value: the number in the bytes.
        meaning: what it stands for, as in ``NOT_LEADER_OR_FOLLOWER``.
        kind: ``name`` or ``time``, what the meaning is.
    """

    value: int
    meaning: str
    kind: str = "name"


class Blob(NamedTuple):
    """Bytes that have no structure here."""

    data: bytes


#: What a field holds; a dict is a struct, its fields in their order.
Tree: TypeAlias = "bool | int | float | str | Meant | Blob | list[Tree] | dict[str, Tree] | None"


#: The field that says what is wrong with the batch or message that it is in.
PROBLEM: Final = "problem"


class Problem(NamedTuple):
    """What is wrong with a piece of the input.

    Attributes:
        text: what was met, and where it helps what to do.
        offset: the byte of the input where it was met.
    """

    text: str
    offset: int


def first_problem(tree: Tree) -> str:
    """What is wrong inside a tree, with where it is; empty if nothing is."""
    path = _path_to_problem(tree)
    return path.removeprefix(".")


def _path_to_problem(tree: Tree) -> str:
    match tree:
        case dict():
            if isinstance(text := tree.get(PROBLEM), str):
                return f": {text}"
            items = [(f".{name}", value) for name, value in tree.items()]
        case list():
            items = [(f"[{index}]", item) for index, item in enumerate(tree)]
        case _:
            return ""
    for step, value in items:
        if isinstance(value, (dict, list)) and (path := _path_to_problem(value)):
            return f"{step}{path}"
    return ""


class Entry(NamedTuple):
    """A frame or a record batch, as far as it could be read.

    Attributes:
        number: its place among the pieces of all inputs, from 1.
        source: the name of its input.
        offset: where it starts in its input, the size prefix included.
        size: how many bytes of it there are, the size prefix included.
        kind: ``request``, ``response``, ``batch``, or ``unknown``.
        about: what it is: API, version, and what else is known without its fields.
        header: the fields of its header; None if it has none, or none that can be read.
        body: its fields; None if none could be read.
        problem: what is wrong with it; None if nothing is.
    """

    number: int
    source: str
    offset: int
    size: int
    kind: str
    about: dict[str, Tree]
    header: dict[str, Tree] | None
    body: dict[str, Tree] | None
    problem: Problem | None
