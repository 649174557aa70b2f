r"""Parses regular expressions of Java.

Supported: everything but ``\G``, ``\X``, ``\b{g}``, the flags d, u and U, and of properties those
of scripts and blocks, such as ``\p{InGreek}``, ``\p{IsIdeographic}`` and a few more. In texts that
are ASCII only, the scripts and blocks of its characters are supported, too.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from . import _characters as characters
from ._parser import REPEAT, Fragment, Parser
from ._program import Accepts, Look, Op

_NAMED_GROUP: Final = re.compile(r"\?<([a-zA-Z][a-zA-Z0-9]*)>")
_NAME: Final = re.compile(r"<([a-zA-Z][a-zA-Z0-9]*)>")
_FLAGS: Final = re.compile(r"\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")
_FLAGS_ALONE: Final = re.compile(r"\(\?[a-zA-Z]*(?:-[a-zA-Z]*)?\)")
_LOOKS: Final = {
    "?=": (False, False),
    "?!": (False, True),
    "?<=": (True, False),
    "?<!": (True, True),
}
_PROPERTY: Final = re.compile(r"\{([^{}]+)\}|(\w)")
_CHARACTER_NAME: Final = re.compile(r"\{([^{}]+)\}")
# With the flag x, blanks mean nothing, nor do comments up to the end of their line.
_SPACED_REPEAT: Final = re.compile(r"\{(\d+)[ \t-\r]*(,?)[ \t-\r]*(\d*)[ \t-\r]*\}")
_IGNORED: Final = re.compile(r"(?:[ \t-\r]|#[^\n\r\x85\u2028\u2029]*)+")
_CODE: Final = re.compile(
    r"x([0-9a-fA-F]{2})|x\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|0([0-3][0-7]{0,2}|[0-7]{1,2})"
)


class JavaParser(Parser):
    """Compiles an expression in the syntax of ``java.util.regex``.

    Args:
        text: the expression.
        ignored_flags: flags that are accepted without effect.
        states_max: the maximum number of states.
        is_ascii: whether the texts are ASCII only.

    Attributes:
        groups_by_name: the numbers of named groups.

    Raises:
        ValueError: the expression is invalid, too large, or uses syntax that is not supported.
    """

    def __init__(self, text: str, ignored_flags: str, states_max: int, *, is_ascii: bool) -> None:
        self._ignored_flags = ignored_flags
        self._is_ascii = is_ascii
        super().__init__(text, states_max)
        self.groups_by_name: dict[str, int] = {}
        self._flags: frozenset[str] = frozenset()

    def _atom(self) -> Fragment:
        if self._take("("):
            return self._group()
        if self._next and self._next in "*+?":
            raise ValueError(f"nothing to repeat before {self._next!r} at position {self._at}")
        if self._next == "{":
            if self._repeat_counts.match(self._text, self._at) is None:
                raise ValueError(f"illegal repetition at position {self._at}")
            return Fragment(lambda after: after, can_be_empty=True)  # Java repeats nothing
        if self._take("["):
            return self._accepting(self._class())
        character = self._take_one()
        if character == "\\":
            return self._escape()
        is_multiline = "m" in self._flags
        if character == "^":
            check = characters.LINE_START if is_multiline else characters.START
            return self._checking(check)
        if character == "$":
            check = characters.LINE_END if is_multiline else characters.LAST_LINE_END
            return self._checking(check)
        if character == ".":
            accepts = _accept_any if "s" in self._flags else characters.is_not_a_line_end
            return self._accepting(accepts)
        return self._accepting(self._literal(character))

    @property
    def _repeat_counts(self) -> re.Pattern[str]:
        return _SPACED_REPEAT if "x" in self._flags else REPEAT

    def _take_ignored(self) -> bool:
        ignored = _IGNORED.match(self._text, self._at) if "x" in self._flags else None
        if ignored is None:
            return False
        self._at = ignored.end()
        return True

    def _after_repetition(self, repeated: Fragment) -> Fragment:
        return self._atomic(repeated) if self._take("+") else repeated  # possessive

    def _atomic(self, part: Fragment) -> Fragment:
        self._is_linear = False
        return Fragment(lambda after: self._add(Op.ATOMIC, part.build(0), after), part.can_be_empty)

    # Groups and flags.

    def _group(self) -> Fragment:
        flags = self._flags
        self._take_ignored()
        fragment = self._inside_group()
        self._flags = flags
        return fragment

    def _inside_group(self) -> Fragment:
        for start, (is_backward, is_negated) in _LOOKS.items():
            if self._take(start):
                return self._look(is_backward, is_negated)
        if self._take("?>"):
            return self._atomic(self._until_closed())
        if named := _NAMED_GROUP.match(self._text, self._at):
            if named[1] in self.groups_by_name:
                raise ValueError(f"the group {named[1]!r} is defined twice")
            self._at = named.end()
            self.groups_by_name[named[1]] = self._group_count
        elif self._next == "?":
            self._set_flags()
            return self._until_closed()
        group = self._group_count
        self._group_count += 1
        return self._saved(self._until_closed(), group)

    def _until_closed(self) -> Fragment:
        fragment = self._alternatives()
        if not self._take(")"):
            raise ValueError("a group is not closed by ')'")
        return fragment

    def _look(self, is_backward: bool, is_negated: bool) -> Fragment:
        self._is_linear = False
        part = self._until_closed()
        return Fragment(
            lambda after: self._add(Op.LOOK, Look(part.build(0), is_backward, is_negated), after),
            can_be_empty=True,
        )

    def _take_flags(self) -> bool:
        if _FLAGS_ALONE.match(self._text, self._at) is None:
            return False
        self._at += 1
        self._set_flags()
        return True

    def _set_flags(self) -> None:
        match = _FLAGS.match(self._text, self._at)
        if match is None:
            start = self._text[self._at - 1 : self._at + 2]
            raise ValueError(f"the group {start} is not supported")
        on, off = match[1], match[2] or ""
        if unknown := "".join(
            each for each in on + off if each not in f"imsx{self._ignored_flags}"
        ):
            raise ValueError(f"the flag {unknown[0]} is not supported; supported: i, m, s, x")
        self._at = match.end()
        self._flags = self._flags.union(on).difference(off)

    # Escapes.

    def _escape(self) -> Fragment:
        if not self._next:
            raise ValueError("the expression ends with a backslash")
        if self._take("Q"):
            return self._quoted()
        if self._take("E"):  # without \Q
            return Fragment(lambda after: after, can_be_empty=True)
        if self._next in "123456789" or self._next == "k":
            return self._back_reference()
        checks = {
            "A": characters.START,
            "b": characters.WORD_BOUNDARY,
            "B": characters.NO_WORD_BOUNDARY,
            "z": characters.END,
            "Z": characters.LAST_LINE_END,
        }
        if self._text.startswith("b{g}", self._at):
            raise ValueError(r"the escape \b{g} is not supported")
        if self._next in checks:
            return self._checking(checks[self._take_one()])
        if self._take("R"):
            return self._atomic(self._line_break())
        found = self._escaped()
        return self._accepting(found if callable(found) else self._literal(found))

    def _quoted(self) -> Fragment:
        r"""Parse what follows ``\Q``; a repetition after it concerns its last character."""
        parts = [self._accepting(self._literal(each)) for each in self._quoted_text()]
        if parts:
            parts[-1] = self._repeated(parts[-1])
        return Fragment(lambda after: self._in_sequence(parts, after), not parts)

    def _quoted_text(self) -> str:
        text, end, _ = self._text[self._at :].partition(r"\E")
        self._at += len(text) + len(end)
        return text

    def _line_break(self) -> Fragment:
        def single(text: str) -> Fragment:
            return self._accepting(frozenset(text).__contains__)

        both = [single("\r"), single("\n")]
        one = single("\n\x0b\f\r\x85\u2028\u2029")
        return Fragment(
            lambda after: self._add(Op.FREE, None, self._in_sequence(both, after), one.build(after))
        )

    def _back_reference(self) -> Fragment:
        self._is_linear = False
        self._has_back_references = True
        if self._take("k"):
            named = _NAME.match(self._text, self._at)
            if named is None or named[1] not in self.groups_by_name:
                raise ValueError(r"\k is not followed by the name of a group")
            self._at = named.end()
            group = self.groups_by_name[named[1]]
        else:
            # As many digits as there are groups before it, at least one.
            group = int(self._take_one())
            while self._next.isdecimal() and 10 * group + int(self._next) < self._group_count:
                group = 10 * group + int(self._take_one())
            if group >= self._group_count:
                raise ValueError(f"there is no group {group} before \\{group}")
        argument = (group, "i" in self._flags)
        return Fragment(lambda after: self._add(Op.BACK, argument, after), can_be_empty=True)

    def _escaped(self) -> str | Accepts:
        """Parse an escape that stands for one character, or for any of a class."""
        if code := _CODE.match(self._text, self._at):
            self._at = code.end()
            number = int(code[4], 8) if code[4] else int(code[1] or code[2] or code[3], 16)
            if number > 0x10FFFF:
                raise ValueError(f"there is no character {number:#x}")
            return chr(number)
        letter = self._take_one()
        if letter.lower() == "p":
            accepts = self._property()
            return accepts if letter == "p" else _negated(accepts)
        if letter.lower() in characters.ESCAPED_CLASSES:
            accepts = characters.ESCAPED_CLASSES[letter.lower()].__contains__
            return accepts if letter.islower() else _negated(accepts)
        if letter in characters.ESCAPED_CHARACTERS:
            return characters.ESCAPED_CHARACTERS[letter]
        if letter == "N":
            return self._named_character()
        if letter == "c" and self._next:
            return chr(ord(self._take_one()) ^ 64)
        if not letter or (letter.isascii() and letter.isalnum()):
            raise ValueError(f"the escape \\{letter} is not supported")
        return letter

    def _named_character(self) -> str:
        name = _CHARACTER_NAME.match(self._text, self._at)
        if name is None:
            raise ValueError(r"\N is not followed by the name of a character")
        self._at = name.end()
        try:
            found = unicodedata.lookup(name[1])
        except KeyError:
            found = ""
        if len(found) != 1:  # Python knows names of sequences, too
            raise ValueError(f"no character has the name {name[1]!r}")
        return found

    def _property(self) -> Accepts:
        name = _PROPERTY.match(self._text, self._at)
        if name is None:
            raise ValueError(r"\p is not followed by the name of a property")
        self._at = name.end()
        return self._any_case(characters.has_property(name[1] or name[2], is_ascii=self._is_ascii))

    # Classes.

    def _class(self) -> Accepts:
        """Parse the rest of a class, such as ``[a-z&&[^x]]``."""
        self._depth += 1
        if self._depth > 50:
            raise ValueError("classes may be nested 50 deep")
        is_negated = self._take("^")
        operands: list[list[Accepts]] = [[]]
        while True:
            self._take_ignored()
            if not self._next:
                raise ValueError("a character class is not closed by ']'")
            if self._next == "]" and (operands[-1] or len(operands) > 1):
                break
            if self._take("&&"):
                operands.append([])
            elif self._take(r"\Q"):
                operands[-1] += map(self._literal, self._quoted_text())
            elif self._take("["):
                operands[-1].append(self._class())
            else:
                operands[-1].append(self._member())
        self._at += 1
        self._depth -= 1
        accepts = _all_of([_any_of(members) for members in operands if members])
        return _negated(accepts) if is_negated else accepts

    def _member(self) -> Accepts:
        """Parse a character, a range, or an escape in a class."""
        self._parts += 1
        if self._parts > self._parts_max:
            raise self._too_large()
        first = self._class_character()
        if callable(first):
            return first
        self._take_ignored()
        following = self._text[self._at + 1 : self._at + 2]
        if self._next != "-" or following in ("]", "[", ""):
            return self._literal(first)
        self._at += 1
        self._take_ignored()
        last = self._class_character()
        if callable(last) or last < first:
            raise ValueError(f"illegal character range at position {self._at}")
        return self._any_case(lambda each: first <= each <= last)

    def _class_character(self) -> str | Accepts:
        return self._escaped() if self._take("\\") else self._take_one()

    def _literal(self, character: str) -> Accepts:
        return self._any_case(character.__eq__)

    def _any_case(self, accepts: Accepts) -> Accepts:
        if "i" not in self._flags:
            return accepts
        # Like Java, only ASCII letters have two cases.
        return lambda each: (
            accepts(each) or (each.isascii() and (accepts(each.lower()) or accepts(each.upper())))
        )


def _any_of(members: list[Accepts]) -> Accepts:
    return members[0] if len(members) == 1 else lambda each: any(one(each) for one in members)


def _all_of(operands: list[Accepts]) -> Accepts:
    return operands[0] if len(operands) == 1 else lambda each: all(one(each) for one in operands)


def _negated(accepts: Accepts) -> Accepts:
    return lambda each: not accepts(each)


def _accept_any(_: str) -> bool:
    return True
