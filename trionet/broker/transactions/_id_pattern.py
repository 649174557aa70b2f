r"""Matches transactional ids against the regular expression of a ListTransactions (KIP-1152).

The problem: Kafka uses RE2, whose time is linear in the length of the text. Python's ``re``
backtracks: a short expression of a client can occupy it for hours, and it holds the interpreter's
lock meanwhile, so that not even a thread would help.

The choice: the textbook simulation of a nondeterministic automaton, in which all states advance at
once (Thompson, 1968). Only single characters and character classes are left to ``re``. Rejected:
the bindings of RE2, a compiled dependency of every installation, for one filter of one request.

Supported: literals, ``.``, classes (also ``[[:alpha:]]`` and the like), ``\d \w \s`` and their
negations, groups, alternatives, repetition (``* + ? {m,n}``, also lazy, which is the same for a
match of the whole text), ``^``, ``$``, and a leading ``(?i)``. Not supported: classes of Unicode
(``\pL``), and flags elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

STATES_MAX: Final = 300
"""The maximum size of the automaton, which bounds the time per character of an id."""

_Matches = Callable[[str], object]
_Fragment = Callable[[int], int]
"""Adds states that continue with a given state, and returns the first of them."""

_REPEAT: Final = re.compile(r"\{(\d+)(,?)(\d*)\}")
_CLASS: Final = re.compile(r"\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]", re.DOTALL)
_NAMED: Final = re.compile(r"\[:(\^?\w+):\]")
_NAMED_CLASSES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "digit": "0-9",
    "lower": "a-z",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\s",
    "upper": "A-Z",
    "word": r"\w",
    "xdigit": "0-9A-Fa-f",
}
_GROUP: Final = re.compile(r"\(\?(?::|P?<\w+>)")
_CLASSES: Final = frozenset("dDwWsS")
_END: Final = 0


class IdPattern:
    """A regular expression that must match whole ids.

    Args:
        text: the expression, in the syntax of RE2.

    Raises:
        ValueError: the expression is invalid, too large, or uses syntax that is not supported.
    """

    def __init__(self, text: str) -> None:
        flags = re.ASCII
        self._rest = text
        if text.startswith("(?i)"):
            flags |= re.IGNORECASE
            self._rest = text[4:]
        self._flags = flags
        # Each state: what it accepts, and its successors. Without the former, it is left at once:
        # "" is free, "^" and "$" depend on the position.
        self._states: list[tuple[_Matches | str, tuple[int, ...]]] = [("", ())]
        try:
            fragment = self._alternatives()
            if self._rest:
                raise ValueError(f"unexpected {self._rest[0]!r} in the expression")
            self._first = fragment(_END)
        except RecursionError:
            raise ValueError("the expression is nested too deeply") from None

    def matches(self, id: str) -> bool:
        """Return whether the expression matches a whole id."""
        states = self._closure([self._first], is_start=True, is_end=not id)
        for index, character in enumerate(id):
            following = [
                successor
                for state in states
                if callable(accepts := self._states[state][0]) and accepts(character)
                for successor in self._states[state][1]
            ]
            if not following:
                return False
            states = self._closure(following, is_start=False, is_end=index == len(id) - 1)
        return _END in states

    def _closure(self, states: list[int], *, is_start: bool, is_end: bool) -> set[int]:
        found: set[int] = set()
        while states:
            state = states.pop()
            if state in found:
                continue
            found.add(state)
            accepts, successors = self._states[state]
            if accepts == "" or (accepts == "^" and is_start) or (accepts == "$" and is_end):
                states += successors
        return found

    def _add(self, accepts: _Matches | str, *successors: int) -> int:
        if len(self._states) >= STATES_MAX:
            raise ValueError(f"the expression is too large; it may have {STATES_MAX} states")
        self._states.append((accepts, successors))
        return len(self._states) - 1

    # Parsing. A fragment can be added several times, which repetition needs.

    def _alternatives(self) -> _Fragment:
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        if len(branches) == 1:
            return branches[0]
        return lambda after: self._add("", *(each(after) for each in branches))

    def _branch(self) -> _Fragment:
        parts: list[_Fragment] = []
        while self._rest and self._rest[0] not in "|)":
            part = self._atom()
            while (repeated := self._repeated(part)) is not None:
                part = repeated
            parts.append(part)
        return lambda after: _in_sequence(parts, after)

    def _atom(self) -> _Fragment:
        if self._take("("):
            return self._group()
        if self._rest[0] in "*+?":
            raise ValueError(f"nothing to repeat before {self._rest[0]!r}")
        if self._rest[0] == "[":
            match = _CLASS.match(self._rest)
            if match is None:
                raise ValueError("a character class is not closed by ']'")
            return self._one(self._character(match.group()))
        character, self._rest = self._rest[0], self._rest[1:]
        if character in "^$":
            return self._one(character)
        if character != "\\":
            return self._one(self._character("." if character == "." else re.escape(character)))
        if not self._rest:
            raise ValueError("the expression ends with a backslash")
        character, self._rest = self._rest[0], self._rest[1:]
        if character.isalnum() and character not in _CLASSES:
            raise ValueError(f"the escape \\{character} is not supported")
        text = f"\\{character}" if character in _CLASSES else re.escape(character)
        return self._one(self._character(text))

    def _group(self) -> _Fragment:
        if self._rest.startswith("?"):
            match = _GROUP.match("(" + self._rest)
            if match is None:
                raise ValueError(f"the group ({self._rest[:3]} is not supported")
            self._rest = self._rest[match.end() - 1 :]
        fragment = self._alternatives()
        if not self._take(")"):
            raise ValueError("a group is not closed by ')'")
        return fragment

    def _one(self, accepts: _Matches | str) -> _Fragment:
        return lambda after: self._add(accepts, after)

    def _character(self, text: str) -> _Matches:
        if text.startswith("["):
            self._rest = self._rest[len(text) :]
            text = _NAMED.sub(_named_class, text)
        try:
            return re.compile(text, self._flags).fullmatch
        except re.error as error:
            raise ValueError(f"{text!r}: {error}") from error

    def _repeated(self, part: _Fragment) -> _Fragment | None:
        """Parse a repetition, if there is one, and return the repeated part."""
        match = _REPEAT.match(self._rest)
        if match is not None:
            self._rest = self._rest[match.end() :]
            least = int(match.group(1))
            most = int(match.group(3)) if match.group(3) else None if match.group(2) else least
        elif self._take("*"):
            least, most = 0, None
        elif self._take("+"):
            least, most = 1, None
        elif self._take("?"):
            least, most = 0, 1
        else:
            return None
        self._take("?")  # lazy
        if (most is not None and most < least) or max(least, most or 0) > STATES_MAX:
            raise ValueError(f"cannot repeat from {least} to {most} times")
        return lambda after: self._repeat(part, least, most, after)

    def _repeat(self, part: _Fragment, least: int, most: int | None, after: int) -> int:
        if most is None:
            loop = self._add("")
            self._states[loop] = ("", (part(loop), after))
            state = loop
        else:
            state = after
            for _ in range(most - least):
                state = self._add("", part(state), after)
        return _in_sequence([part] * least, state)

    def _take(self, text: str) -> bool:
        if self._rest.startswith(text):
            self._rest = self._rest[len(text) :]
            return True
        return False


def _named_class(match: re.Match[str]) -> str:
    characters = _NAMED_CLASSES.get(match.group(1))
    if characters is None:
        names = ", ".join(_NAMED_CLASSES)
        raise ValueError(f"the class {match.group()} is not supported; supported: {names}")
    return characters


def _in_sequence(parts: list[_Fragment], after: int) -> int:
    for part in reversed(parts):
        after = part(after)
    return after
