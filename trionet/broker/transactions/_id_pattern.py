r"""Matches transactional ids against the regular expression of a ListTransactions (KIP-1152).

Kafka uses RE2, whose time is linear in the length of the text, and so is that of the automaton
here. An expression is parsed in time linear in its length, and each of its parts is built only a
bounded number of times: a client may send anything.

Supported: literals, ``.``, classes (also ``[[:alpha:]]`` and the like), ``\d \w \s`` and their
negations, groups, alternatives, repetition (``* + ? {m,n}``, also lazy, which is the same for a
match of the whole text), ``^``, ``$``, and ``(?i)``.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from typing import Final

from ..._util.patterns._automaton import Automaton
from ..._util.patterns._characters import END, START
from ..._util.patterns._parser import REPEAT, Fragment, Parser

STATES_MAX: Final = 300
"""The maximum size of the automaton, which bounds the time per character of an id."""
CHARACTERS_MAX: Final = 10 * STATES_MAX
"""The maximum length of an expression."""

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


class IdPattern:
    """A regular expression that must match whole ids.

    Args:
        text: the expression, in the syntax of RE2.

    Raises:
        ValueError: the expression is invalid, too large, or uses syntax that is not supported.
    """

    def __init__(self, text: str) -> None:
        program = _Parser(text, STATES_MAX).parse()
        self.size = len(program.states)
        """The size of the automaton, which is the maximum number of steps per character."""
        self._automaton = Automaton(program, is_whole=True)

    def matches(self, id: str) -> bool:
        """Return whether the expression matches a whole id."""
        steps = self.steps(id)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                return bool(stop.value)

    def steps(self, id: str) -> Generator[object, None, bool]:
        """Do the same as :meth:`matches`, as a generator that yields at each character."""
        found = yield from self._automaton.steps(id)
        return found is not None


class _Parser(Parser):
    """Compiles an expression of RE2."""

    has_groups = False

    def __init__(self, text: str, states_max: int) -> None:
        super().__init__(text, states_max)
        self._flags = re.ASCII

    def _take_flags(self) -> bool:
        if not self._take("(?i)"):
            return False
        self._flags |= re.IGNORECASE
        return True

    def _atom(self) -> Fragment:
        if self._take("("):
            return self._group()
        if self._next in "*+?" or REPEAT.match(self._text, self._at):
            raise ValueError(f"nothing to repeat before {self._next!r} at position {self._at}")
        if self._next == "[":
            return self._class()
        character = self._take_one()
        if character in "^$":
            return self._checking(START if character == "^" else END)
        if character != "\\":
            return self._character("." if character == "." else re.escape(character))
        if not self._next:
            raise ValueError("the expression ends with a backslash")
        character = self._take_one()
        if character.isalnum() and character not in _CLASSES:
            raise ValueError(f"the escape \\{character} is not supported")
        text = f"\\{character}" if character in _CLASSES else re.escape(character)
        return self._character(text)

    def _class(self) -> Fragment:
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
        return self._character("[" + "".join(parts))

    def _group(self) -> Fragment:
        if self._next == "?":
            match = _GROUP.match(self._text, self._at - 1)
            if match is None:
                start = self._text[self._at - 1 : self._at + 2]
                raise ValueError(f"the group {start} is not supported")
            self._at = match.end()
        flags = self._flags
        fragment = self._alternatives()
        self._flags = flags
        if not self._take(")"):
            raise ValueError("a group is not closed by ')'")
        return fragment

    def _character(self, text: str) -> Fragment:
        try:
            return self._accepting(re.compile(text, self._flags).fullmatch)
        except re.error as error:
            raise ValueError(f"{text!r}: {error}") from error

    def _repeated(self, part: Fragment) -> Fragment:
        repeated = super()._repeated(part)
        if repeated is not part and super()._repeated(repeated) is not repeated:
            raise ValueError("a repetition is repeated; put the inner one in a group")
        return repeated


def _characters_of(name: str) -> str:
    characters = _NAMED_CLASSES.get(name)
    if characters is None:
        names = ", ".join(_NAMED_CLASSES)
        raise ValueError(f"the class [:{name}:] is not supported; supported: {names}")
    return characters
