"""What strangers put into names, and whether a terminal would have obeyed it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

#: What a forged line begins with.
FORGED: Final = "FORGED"
#: What a terminal would obey, hide, reorder or take for a line of its own.
_ATTACKS: Final = (
    # ESC: erase, colours, another screen, reports, reset, print, DCS, APC, PM, character sets
    *("\x1b[2J", "\x1b[31;8mhidden", "\x1b[H\x1b[K", "\x1b[?1049h", "\x1b[6n", "\x1b[>c", "\x1bc"),
    *("\x1b[5i", '\x1bP$q"p\x1b\\', "\x1b_x\x1b\\", "\x1b^x\x1b\\", "\x1b#8", "\x0e"),
    # C1: CSI, OSC, DCS, NEL, RI
    *("\x9b2J", "\x9d0;title\x9c", "\x90q\x9c", f"\x85{FORGED}", "\x8d"),
    # OSC: links, clipboard, title, folder, font
    *("\x1b]8;;http://example.org\x07link\x1b]8;;\x07", "\x1b]52;c;eA==\x07", "\x1b]0;title\x07"),
    *("\x1b]7;file:///\x07", "\x1b]50;?\x07"),
    # directions, and what is not seen
    *("\u202etxt", "\u202dtxt", "\u2066txt", "\u2067txt\u2069", "\u200ftxt", "\u061ctxt", "\u200b"),
    # halves of pairs
    *("\ud800", "\udc9b2J", "\udfff\ud800"),
    # ends of lines
    *(f"\r\n{FORGED}", f"\n{FORGED}", f"\r{FORGED}", f"\x0b{FORGED}", f"\x0c{FORGED}"),
    *(f"\u2028{FORGED}", f"\u2029{FORGED}"),
    # rich's markup
    *("[bold]x[/nope]", "[link=http://example.org]x[/link]", "[/]", ":smile:"),
    # others
    *("\x00", "\x7f", "\x08\x08\x08", "\x07"),
)
#: Names, each of which is another one.
PAYLOADS: Final = tuple(f"p{number:02}{attack}" for number, attack in enumerate(_ATTACKS))
#: Those that UTF-8 has.
ON_THE_WIRE: Final = tuple(
    each for each in PAYLOADS if each == each.encode("utf-8", "replace").decode("utf-8")
)
#: How long a program may take.
_SECONDS: Final = 60.0
_OWN_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")


def leaks(shown: str) -> list[str]:
    """What of a text that went to a terminal the terminal has obeyed, or a stranger has begun."""
    text = _OWN_STYLES.sub("", shown).replace("\r\n", "\n")
    found = sorted({ascii(each) for each in text if not (each.isprintable() or each == "\n")})
    found += [line for line in text.split("\n") if line.startswith(FORGED)]
    return found + raw_payloads(shown)


def raw_payloads(shown: str) -> list[str]:
    """The payloads that are in a text as they are, although a terminal would obey them."""
    return [ascii(each) for each in PAYLOADS if not each.isprintable() and each in shown]


def terminal_output(
    command: Sequence[str | Path],
    env: Mapping[str, str] | None = None,
    *,
    keys: str = "",
    after: str = "",
    size: tuple[int, int] = (40, 160),
) -> str:
    """Everything that a program writes to a terminal of its own, of this size in lines and columns.

    Args:
        command: the program.
        env: added to the environment.
        keys: what is typed.
        after: what the program has written when it is typed.
        size: of the terminal.

    Raises:
        TimeoutError: it has not ended within a minute.
    """
    near, far = pty.openpty()
    with contextlib.ExitStack() as last:
        last.callback(os.close, near)
        fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        environment = {**os.environ, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8", **(env or {})}
        process = subprocess.Popen(
            command, stdin=far, stdout=far, stderr=far, env=environment, start_new_session=True
        )
        last.callback(process.wait)
        last.callback(process.kill)
        os.close(far)
        return _read(near, keys.encode(), after.encode())


def _read(terminal: int, keys: bytes, after: bytes) -> str:
    written, ends = b"", time.monotonic() + _SECONDS
    while select.select([terminal], [], [], max(0.0, ends - time.monotonic()))[0]:
        try:
            piece = os.read(terminal, 65536)
        except OSError:  # the program has closed its end
            piece = b""
        if not piece:
            return written.decode("utf-8", "surrogateescape")
        written += piece
        if keys and after in written:
            os.write(terminal, keys)
            keys = b""
    raise TimeoutError(f"still running after {written[-2000:]!r}")
