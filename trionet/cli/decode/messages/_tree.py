"""Trees of decoded values: plain Python values, numbers with a meaning, and bytes.

The values come from untrusted input and are not safe to print on a terminal. The modules ``_lines``
and ``_documents`` escape them.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias


class Meant(NamedTuple):
    """A number with a meaning.

    Attributes:
        value: the encoded number.
        meaning: the meaning, such as ``NOT_LEADER_OR_FOLLOWER``.
        kind: the kind of the meaning: ``name`` or ``time``.
    """

    value: int
    meaning: str
    kind: str = "name"


class Blob(NamedTuple):
    """Bytes without a known structure."""

    data: bytes


#: The value of a field, where a dict is a struct with the fields in order.
Tree: TypeAlias = "bool | int | float | str | Meant | Blob | list[Tree] | dict[str, Tree] | None"


#: The name of the field that describes the problem of a batch or message.
PROBLEM: Final = "problem"


class Problem(NamedTuple):
    """A problem in an entry.

    Attributes:
        text: a description of the problem and, if there is one, the remedy.
        offset: the position of the problem in the input.
    """

    text: str
    offset: int


def first_problem(tree: Tree) -> str:
    """Return the first problem in a tree with its path, or an empty string if there is none."""
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
    """A frame or a record batch, as far as it could be decoded.

    Attributes:
        number: the index among the entries of all inputs, from 1.
        source: the name of the input.
        offset: the position of the entry in the input, including the size prefix.
        size: the size in bytes, including the size prefix.
        kind: ``request``, ``response``, ``batch``, or ``unknown``.
        about: the API, version, and other properties that are not fields.
        header: the fields of the header; None if absent or undecodable.
        body: the fields of the message; None if no field could be decoded.
        problem: the problem; None if there is none.
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
