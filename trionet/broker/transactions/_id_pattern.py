r"""Matches transactional ids against the regular expression of a ListTransactions (KIP-1152).

The problem: Kafka uses RE2, whose time is linear in the length of the text. Python's ``re``
backtracks: a short expression of a client can occupy it for hours, and it holds the interpreter's
lock meanwhile, so that not even a thread would help.

The choice: the textbook simulation of a nondeterministic automaton, in which all states advance at
once (Thompson, 1968). Only single characters and character classes are left to ``re``. Rejected:
the bindings of RE2, a compiled dependency of every installation, for one filter of one request.

An expression is parsed in time linear in its length, and each of its parts is built only a bounded
number of times: a client may send anything.

Supported: literals, ``.``, classes (also ``[[:alpha:]]`` and the like), ``\d \w \s`` and their
negations, groups, alternatives, repetition (``* + ? {m,n}``, also lazy, which is the same for a
match of the whole text), ``^``, ``$``, and ``(?i)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from typing import Final

STATES_MAX: Final = 300
"""The maximum size of the automaton, which bounds the time per character of an id."""
CHARACTERS_MAX: Final = 10 * STATES_MAX
"""The maximum length of an expression."""
PARTS_MAX: Final = 10 * STATES_MAX
"""How many parts of the expression may be built, counting repeated and empty ones."""
DEPTH_MAX: Final = 50
"""How deep groups may be nested."""

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
# What RE2 takes literally in a class, and re does not, or says that it will not for long.
_SET_SYNTAX: Final = re.compile(r"(?<!\\)[\[&~|]")
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
        if len(text) > CHARACTERS_MAX:
            raise ValueError(f"the expression may have {CHARACTERS_MAX} characters")
        self._flags = re.ASCII
        self._text = text
        self._at = 0
        self._characters = 0  # how many parts accept a character, before they are repeated
        self._depth = 0
        self._parts = 0
        # Each state: what it accepts, and its successors. Without the former, it is left at once:
        # "" is free, "^" and "$" depend on the position.
        self._states: list[tuple[_Matches | str, tuple[int, ...]]] = [("", ())]
        fragment = self._alternatives()
        if self._next:
            raise ValueError(f"unexpected {self._next!r} at position {self._at}")
        self._first = fragment(_END)

    @property
    def size(self) -> int:
        """The size of the automaton, which is the maximum number of steps per character."""
        return len(self._states)

    def matches(self, id: str) -> bool:
        """Return whether the expression matches a whole id."""
        steps = self.steps(id)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return bool(stop.value)

    def steps(self, id: str) -> Generator[None, None, bool]:
        """Do the same as :meth:`matches`, as a generator that yields after each character."""
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
            yield
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
            raise _too_large()
        self._states.append((accepts, successors))
        return len(self._states) - 1

    # Parsing. A fragment can be added several times, which repetition needs.

    def _alternatives(self) -> _Fragment:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise ValueError(f"groups may be nested {DEPTH_MAX} deep")
        flags = self._flags
        branches = [self._branch()]
        while self._take("|"):
            branches.append(self._branch())
        self._flags = flags  # (?i) ends with its group
        self._depth -= 1
        if len(branches) == 1:
            return branches[0]
        return lambda after: self._add("", *(each(after) for each in branches))

    def _branch(self) -> _Fragment:
        parts: list[_Fragment] = []
        while self._next and self._next not in "|)":
            if self._take("(?i)"):
                self._flags |= re.IGNORECASE
                continue
            part = self._atom()
            repeated = self._repeated(part)
            if repeated is not None:
                part = repeated
                if self._repeated(part) is not None:
                    raise ValueError("a repetition is repeated; put the inner one in a group")
            parts.append(part)
        return lambda after: self._in_sequence(parts, after)

    def _atom(self) -> _Fragment:
        if self._take("("):
            return self._group()
        if self._next in "*+?" or _REPEAT.match(self._text, self._at):
            raise ValueError(f"nothing to repeat before {self._next!r} at position {self._at}")
        if self._next == "[":
            return self._class()
        character = self._take_one()
        if character in "^$":
            return self._one(character)
        if character != "\\":
            return self._one(self._character("." if character == "." else re.escape(character)))
        if not self._next:
            raise ValueError("the expression ends with a backslash")
        character = self._take_one()
        if character.isalnum() and character not in _CLASSES:
            raise ValueError(f"the escape \\{character} is not supported")
        text = f"\\{character}" if character in _CLASSES else re.escape(character)
        return self._one(self._character(text))

    def _class(self) -> _Fragment:
        match = _CLASS.match(self._text, self._at)
        if match is None:
            raise ValueError("a character class is not closed by ']'")
        self._at = match.end()
        text = match.group()
        if "--" in text:
            raise ValueError("ranges that begin or end with a hyphen are not supported")
        parts = _NAMED.split(text[1:])  # every second one is the name of a class
        parts[::2] = [_SET_SYNTAX.sub(r"\\\g<0>", each) for each in parts[::2]]
        parts[1::2] = map(_characters_of, parts[1::2])
        return self._one(self._character("[" + "".join(parts)))

    def _group(self) -> _Fragment:
        if self._next == "?":
            match = _GROUP.match(self._text, self._at - 1)
            if match is None:
                start = self._text[self._at - 1 : self._at + 2]
                raise ValueError(f"the group {start} is not supported")
            self._at = match.end()
        fragment = self._alternatives()
        if not self._take(")"):
            raise ValueError("a group is not closed by ')'")
        return fragment

    def _one(self, accepts: _Matches | str) -> _Fragment:
        return lambda after: self._add(accepts, after)

    def _character(self, text: str) -> _Matches:
        self._characters += 1
        if self._characters >= STATES_MAX:
            raise _too_large()
        try:
            return re.compile(text, self._flags).fullmatch
        except re.error as error:
            raise ValueError(f"{text!r}: {error}") from error

    def _repeated(self, part: _Fragment) -> _Fragment | None:
        """Parse a repetition, if there is one, and return the repeated part."""
        match = _REPEAT.match(self._text, self._at)
        if match is not None:
            self._at = match.end()
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
        return self._in_sequence([part] * least, state)

    def _in_sequence(self, parts: list[_Fragment], after: int) -> int:
        self._parts += 1 + len(parts)
        if self._parts > PARTS_MAX:
            raise _too_large()
        for part in reversed(parts):
            after = part(after)
        return after

    @property
    def _next(self) -> str:
        """The next character of the expression; empty at its end."""
        return self._text[self._at : self._at + 1]

    def _take_one(self) -> str:
        character = self._next
        self._at += 1
        return character

    def _take(self, text: str) -> bool:
        if self._text.startswith(text, self._at):
            self._at += len(text)
            return True
        return False


def _characters_of(name: str) -> str:
    characters = _NAMED_CLASSES.get(name)
    if characters is None:
        names = ", ".join(_NAMED_CLASSES)
        raise ValueError(f"the class [:{name}:] is not supported; supported: {names}")
    return characters


def _too_large() -> ValueError:
    return ValueError(f"the expression is too large; it may have {STATES_MAX} states")
