"""Make the C that mypyc writes safe against what an object does when it ends.

The end of an object can run Python code: a log file closes its descriptor in `__del__`. Then other
threads run, and what they must not find is a place that still names the object. Python's own
interpreter changes the place first and lets go of the old object afterwards. mypyc 2.4 does not, in
two places, and a thread that reads a log while the loop closes one of its files crashes:

* An attribute is set: the old value is let go, and then the new one is stored.
* A generator or coroutine ends: it is offered for use again, and then its variables are let go.

Here both are put into the right order. What looks alike and cannot be mended is an error, so that
another mypyc is found out by the build.
"""

from __future__ import annotations

import re

#: Letting go of an attribute, or of one item of an attribute that is a tuple.
_LET_GO = re.compile(
    r"\s*CPy(?:Tagged)?_X?DECREF(?:_NO_IMM)?\((?P<place>(?:\(\(|self->).*?)(?:\.f\d+)*\);"
)
_OFFERED = re.compile(r"\s*(?P<place>\w+_free_instance) = self;")


class CannotMend(Exception):
    """The generated C is not what this knows."""


def mended(text: str) -> str:
    """One generated C file, in the right order.

    Raises:
        CannotMend: it has another form than mypyc 2.4's.
    """
    lines = text.split("\n")
    done: list[str] = []
    at = 0
    while at < len(lines):
        let_go, offered = _LET_GO.fullmatch(lines[at]), _OFFERED.fullmatch(lines[at])
        if let_go is not None:
            at = _store_first(lines, at, let_go["place"], done)
        elif offered is not None:
            at = _offer_last(lines, at, offered["place"], done)
        else:
            done.append(lines[at])
            at += 1
    return "\n".join(done)


def _store_first(lines: list[str], at: int, place: str, done: list[str]) -> int:
    """From the first line that lets go of ``place``; returns where to go on."""
    end = at
    while (match := _LET_GO.fullmatch(lines[end])) is not None and match["place"] == place:
        end += 1
    let_go = [line.replace(place, "old_value") for line in lines[at:end]]
    condition = done[-1].strip()
    if condition.startswith("if (") and place in condition and lines[end].strip() == "}":
        done.pop()
        let_go = [condition.replace(place, "old_value"), *let_go, "}"]
        end += 1
    if not lines[end].strip().startswith(f"{place} = "):
        raise CannotMend(f"after {lines[at].strip()!r} the attribute is not set")
    done += [f"{{ __typeof__({place}) old_value = {place};", lines[end], *let_go, "}"]
    return end + 1


def _offer_last(lines: list[str], at: int, place: str, done: list[str]) -> int:
    """From the line that offers a generator to its next user; returns where to go on."""
    end = at
    while lines[end].strip() != "return;":
        end += 1
        if end == len(lines) or lines[end].startswith("}"):
            raise CannotMend(f"after {lines[at].strip()!r} the generator is not left alone")
    if done[-1].strip() != f"if ({place} == NULL) {{" or lines[end + 1].strip() != "}":
        raise CannotMend(f"{lines[at].strip()!r} has another condition")
    # Another one may have been offered meanwhile: then this one is freed, as at its beginning.
    done += [*lines[at + 1 : end], f"if ({place} == NULL) {{", lines[at], "return;", "}", "}"]
    return end + 2
