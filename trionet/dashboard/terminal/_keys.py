"""Decodes keys, clicks, pasted text and replies from chunks of terminal input; performs no I/O.

The decoder supports the input of xterm, the Linux console, tmux and similar terminals: CSI and SS3
sequences with modifiers, mouse reports in SGR and X10 format, bracketed paste, UTF-8, and the
replies to the questions of :mod:`._tty`. Other sequences and control strings are skipped up to
their end, so that none of their bytes acts as a key. A single ESC is the Escape key only if no
further byte arrives for a short time. The caller measures this time; see
:attr:`KeyDecoder.wait_seconds` and :meth:`KeyDecoder.flush`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import attrs

#: How long to wait for the rest of a sequence after ESC. Even ssh delivers it in one piece.
ESCAPE_SECONDS: Final = 0.04
#: The time after which an incomplete paste ends, so that it cannot disable the keyboard.
PASTE_SECONDS: Final = 1.0
#: How long to wait for the rest of a reply.
REPLY_SECONDS: Final = 0.5
#: The maximum sizes of a paste and of a sequence that has a meaning.
PASTE_BYTES_MAX: Final = 65_536
SEQUENCE_BYTES_MAX: Final = 64

_ESC: Final = 0x1B
_PASTE_BEGIN: Final = b"\x1b[200~"
_PASTE_END: Final = b"\x1b[201~"
#: OSC 11, a background colour: `rgb:` or `rgba:`, each channel in one to four hexadecimal digits.
_BACKGROUND: Final = re.compile(
    rb"11;rgba?:([\da-f]{1,4})/([\da-f]{1,4})/([\da-f]{1,4})(?:/[\da-f]{1,4})?", re.IGNORECASE
)
#: OSC, DCS, APC, PM and SOS: ESC with one of these characters.
_STRINGS: Final = b"]P_^X"
#: The beginning of a string that a terminal sends. With another byte, it is alt and a character.
_STRING_BEGIN: Final = re.compile(rb"\x1b[]P_^X][ -?G]")
#: The end of a string: BEL or ST; any other ESC begins the next sequence, as in xterm.
_STRING_END: Final = re.compile(rb"\x07|\x1b\\|(?=\x1b[^\\])")

_BY_FINAL: Final = {
    "A": "up",
    "B": "down",
    "C": "right",
    "D": "left",
    "E": "begin",
    "F": "end",
    "H": "home",
    "P": "f1",
    "Q": "f2",
    "R": "f3",
    "S": "f4",
    "Z": "backtab",
    "M": "enter",  # of the keypad, after SS3
}
_BY_NUMBER: Final = {
    1: "home",
    2: "insert",
    3: "delete",
    4: "end",
    5: "pageup",
    6: "pagedown",
    7: "home",
    8: "end",
    **{11 + n: f"f{1 + n}" for n in range(5)},
    **{17 + n: f"f{6 + n}" for n in range(5)},
    **{23 + n: f"f{11 + n}" for n in range(2)},
}
_CONTROL: Final = {
    0x00: "ctrl-space",
    0x08: "backspace",
    0x09: "tab",
    0x0A: "enter",
    0x0D: "enter",
    0x7F: "backspace",
}
_MODIFIERS: Final = ((4, "ctrl-"), (2, "alt-"), (1, "shift-"))
_WHEEL: Final = {64: "wheel-up", 65: "wheel-down"}


@attrs.frozen
class Key:
    """A key press.

    Attributes:
        name: the character itself, or a name such as ``enter``, ``pageup`` or ``f1``, prefixed with
            any of ``ctrl-``, ``alt-`` and ``shift-`` in this order.
    """

    name: str


@attrs.frozen
class Mouse:
    """A mouse event.

    Attributes:
        kind: ``press``, ``release``, ``move``, ``wheel-up`` or ``wheel-down``.
        column: the column, counted from 0 at the left.
        row: the row, counted from 0 at the top.
        button: 0 for left, 1 for middle, 2 for right.
    """

    kind: str
    column: int
    row: int
    button: int = 0


@attrs.frozen
class Paste:
    """Pasted text, which may contain any characters."""

    text: str


@attrs.frozen
class Background:
    """The terminal's reply about its background: red, green and blue, from 0 to 255."""

    color: tuple[int, int, int]


@attrs.frozen
class Attributes:
    """The terminal's reply about its attributes, which every terminal sends. It is the last one."""


Event = Key | Mouse | Paste
Reply = Background | Attributes


class KeyDecoder:
    """Decodes bytes into events."""

    def __init__(self) -> None:
        self._buffer = b""
        self._pasted: bytearray | None = None

    @property
    def wait_seconds(self) -> float | None:
        """How long to wait for more bytes before :meth:`flush`; None if no event is pending."""
        if self._pasted is not None:
            return PASTE_SECONDS
        if _STRING_BEGIN.match(self._buffer):
            return REPLY_SECONDS
        return ESCAPE_SECONDS if self._buffer else None

    def feed(self, data: bytes) -> list[Event | Reply]:
        """Add bytes, and return the completed events."""
        self._buffer += data
        return list(self._events())

    def flush(self) -> list[Event | Reply]:
        """Return the events of an incomplete sequence, assuming that no further byte follows."""
        rest, self._buffer = self._buffer, b""
        if self._pasted is not None:
            pasted, self._pasted = self._pasted + rest, None
            return [_paste(pasted)]
        if rest == b"\x1b":
            return [Key("esc")]
        if rest[:1] == b"\x1b" and len(rest) == 2:  # such as [, which otherwise starts a sequence
            return [Key(f"alt-{chr(rest[1])}")] if rest[1] < 0x80 else []
        return []  # half a sequence or half a character

    def _events(self) -> Iterator[Event | Reply]:
        while self._buffer:
            before = self._buffer
            event: Event | Reply | None
            if self._pasted is not None:
                event = self._rest_of_paste(self._pasted)
            elif before[0] == _ESC:
                event = self._escape()
            else:
                event = self._character(0)
            if event is not None:
                yield event
            elif self._buffer == before:
                return  # more bytes are needed

    def _take(self, count: int) -> bytes:
        data, self._buffer = self._buffer[:count], self._buffer[count:]
        return data

    def _rest_of_paste(self, pasted: bytearray) -> Event | None:
        end = self._buffer.find(_PASTE_END)
        # The last bytes may be the start of the end marker.
        complete = len(self._buffer) - len(_PASTE_END) + 1 if end < 0 else end
        if complete > 0:
            pasted += self._take(complete)[: max(0, PASTE_BYTES_MAX - len(pasted))]
        if end < 0:
            return None
        self._take(len(_PASTE_END))
        self._pasted = None
        return _paste(pasted)

    def _escape(self) -> Event | Reply | None:
        follows = self._buffer[1:2]
        if not follows:
            return None
        if follows == b"[":
            return self._csi()
        if follows == b"O":
            return self._ss3()
        if follows in _STRINGS:
            return self._string()
        if follows == b"\x1b":
            self._take(1)
            return Key("esc")
        return self._alt()

    def _alt(self) -> Key | None:
        character = self._character(1)
        return Key(f"alt-{character.name}") if character is not None else None

    def _csi(self) -> Event | Reply | None:
        buffer = self._buffer
        if buffer[2:3] == b"[":  # F1 to F5 of the Linux console
            if len(buffer) < 4:
                return None
            number = self._take(4)[3] - 0x41
            return Key(f"f{number + 1}") if 0 <= number < 5 else None
        if buffer[2:3] == b"M":
            return self._x10_mouse()
        for index in range(2, len(buffer)):
            byte = buffer[index]
            if 0x40 <= byte <= 0x7E:
                return self._csi_event(self._take(index + 1))
            if not 0x20 <= byte <= 0x3F:
                self._take(index)  # not a sequence: decoding starts again here
                return None
        if len(buffer) > SEQUENCE_BYTES_MAX:
            self._buffer = b"\x1b[="  # without a meaning, until its end
        return None

    def _x10_mouse(self) -> Event | None:
        """Decode the report of a terminal without SGR format: three bytes, each 32 too large."""
        report = self._buffer[3:6]
        if any(byte < 32 for byte in report):
            self._take(3)  # not a report: decoding starts again here
            return None
        if len(report) < 3:
            return None
        self._take(6)
        code, column, row = (byte - 32 for byte in report)
        return _mouse(code, column, row, is_release=code & 0b1100011 == 3)

    def _csi_event(self, sequence: bytes) -> Event | Reply | None:
        if sequence == _PASTE_BEGIN:
            self._pasted = bytearray()
            return None
        final, text = chr(sequence[-1]), sequence[2:-1].decode("ascii")
        if len(sequence) > SEQUENCE_BYTES_MAX:
            return None
        if text.startswith("<") and final in "Mm":
            numbers = _numbers(text[1:])
            if numbers is None or len(numbers) != 3:
                return None
            return _mouse(*numbers, is_release=final == "m")
        if text.startswith("?") and final == "c":
            return Attributes()
        numbers = _numbers(text)
        if numbers is None:
            return None
        modifier = numbers[1] if len(numbers) > 1 else 1
        if final == "~":
            name = _BY_NUMBER.get(numbers[0] if numbers else 0)
        else:  # other numbers are positions, which end with the same letters
            name = _BY_FINAL.get(final) if final != "M" and numbers[:1] in ([], [1]) else None
        return None if name is None else Key(_modified(name, modifier))

    def _string(self) -> Event | Reply | None:
        """Decode a reply of the terminal, and skip other strings; alt-] begins like one."""
        buffer = self._buffer
        if len(buffer) < 3:
            return None
        if not _STRING_BEGIN.match(buffer):
            return self._alt()
        end = _STRING_END.search(buffer, 2)
        if end is None:
            if len(buffer) > SEQUENCE_BYTES_MAX:  # without a meaning, until its end
                self._buffer = buffer[:2] + b"?" + buffer[-1:] * buffer.endswith(b"\x1b")
            return None
        sequence = self._take(end.end())
        found = _BACKGROUND.fullmatch(sequence, 2, end.start())
        if found is None or not sequence.startswith(b"\x1b]"):
            return None
        red, green, blue = (int(each, 16) * 255 // (16 ** len(each) - 1) for each in found.groups())
        return Background((red, green, blue))

    def _ss3(self) -> Event | None:
        for index in range(2, len(self._buffer)):
            byte = self._buffer[index]
            if 0x40 <= byte <= 0x7E:
                sequence = self._take(index + 1)
                name = _BY_FINAL.get(chr(byte))
                modifier = int(sequence[2:-1] or b"1")
                return None if name is None else Key(_modified(name, modifier))
            if not 0x30 <= byte <= 0x39 or index >= SEQUENCE_BYTES_MAX:
                self._take(index)
                return None
        return None

    def _character(self, skipped: int) -> Key | None:
        """Decode one character after ``skipped`` bytes, and consume the bytes and the character."""
        byte = self._buffer[skipped]
        if byte < 0x20 or byte == 0x7F:
            self._take(skipped + 1)
            return Key(_CONTROL.get(byte) or f"ctrl-{chr(byte | 0x40).lower()}")
        length = _utf8_length(byte)
        data = self._buffer[skipped : skipped + length]
        if len(data) < length and all(0x80 <= each <= 0xBF for each in data[1:]):
            return None
        try:
            text = data.decode()
        except UnicodeDecodeError:
            self._take(skipped + 1)  # skip an invalid byte
            return None
        self._take(skipped + length)
        return Key(text)


def _utf8_length(first: int) -> int:
    if first < 0xC2 or first > 0xF4:
        return 1
    return 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _numbers(text: str) -> list[int] | None:
    """Parse the parameters of a sequence, or return None if they are invalid for a key."""
    found: list[int] = []
    for part in text.split(";") if text else []:
        number = part.partition(":")[0] or "1"
        if not number.isdecimal():
            return None
        found.append(int(number))
    return found


def _modified(name: str, modifier: int) -> str:
    bits = modifier - 1
    return "".join(prefix for bit, prefix in _MODIFIERS if bits & bit) + name


def _mouse(code: int, column: int, row: int, *, is_release: bool) -> Mouse | None:
    if code & 128:  # buttons beside the wheel, such as the one that leads back
        return None
    if code & 64:  # 66 and 67 scroll to the sides
        kind, button = _WHEEL.get(code & 67, ""), 0
    else:
        kind = "release" if is_release else "move" if code & 32 else "press"
        button = code & 3
    return Mouse(kind, max(0, column - 1), max(0, row - 1), button) if kind else None


def _paste(data: bytes | bytearray) -> Paste:
    return Paste(bytes(data).decode(errors="replace"))
