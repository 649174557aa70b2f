"""Source text that is checked in: no line is too long."""

from __future__ import annotations

from trionet.protocol.unrolling._source import WIDTH


def wrapped(text: str) -> str:
    """The text with its long lines broken."""
    return "\n".join(part for line in text.split("\n") for part in wrap(line))


def wrap(line: str) -> list[str]:
    """Break a line that is too long: at a read's targets, ``and``, in a call, or after ``=``."""
    if len(line) <= WIDTH:
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    inner = indent + "    "
    targets, _, call = line.strip().partition(" = U_")
    if call:
        return [f"{indent}(", *_fill(targets.split(", "), inner), f"{indent}) = U_{call}"]
    if line.strip().startswith("if ") and line.endswith(":"):
        first, *others = line.strip()[3:-1].split(" and ")
        return [
            f"{indent}if (",
            inner + first,
            *(f"{inner}and {each}" for each in others),
            f"{indent}):",
        ]
    target, _, value = line.partition(" = ")
    if value and " = " not in value and not line.startswith("def "):
        return [f"{target} = (", *wrap(inner + value), f"{indent})"]
    head, _, rest = line.partition("(")
    body, closed, tail = rest.rpartition(")")
    if closed and (head[-1].isalnum() or head[-1] in "_]") and _balanced(body):
        parts = [each for text in _fill(_split(body), inner) for each in wrap(text)]
        return [*_call_head(head, indent), *parts, f"{indent}){tail}"]
    return [line]


def _call_head(head: str, indent: str) -> list[str]:
    """What stands before a call's arguments: a name, or an item whose keys may need lines too."""
    if len(head) < WIDTH or not head.endswith("]"):
        return [f"{head}("]
    name, _, keys = head[:-1].partition("[")
    return [f"{name}[", *_fill(_split(keys), indent + "    "), f"{indent}]("]


def _balanced(text: str) -> bool:
    depth = 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if depth < 0:
            return False
    return depth == 0


def _split(text: str) -> list[str]:
    """The parts of a comma-separated list, ignoring commas inside brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append(text[start:index].strip())
            start = index + 1
    parts.append(text[start:].strip())
    return [part for part in parts if part]


def _fill(parts: list[str], indent: str) -> list[str]:
    lines, line = [], indent
    for part in parts:
        if len(line) + len(part) + 2 > WIDTH and line != indent:
            lines.append(line.rstrip())
            line = indent
        line += part + ", "
    lines.append(line.rstrip())
    return lines
