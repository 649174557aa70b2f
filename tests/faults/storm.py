"""Connects and resets as often as it is told to, in a process of its own.

On the word ``begin`` it begins; on ``end`` it stops, and tells how many connections it tried to
make, how many of them were there at once, and how long it took. One that the server does not
accept at once is given up: an attempt is all that a storm takes.
"""

from __future__ import annotations

import os
import random
import select
import socket
import struct
import sys
import time
from typing import Any

from faults.program import tell, told
from support.wire import LOOPBACK

SLICE_SECONDS = 0.01
_RESET = struct.pack("ii", 1, 0)


def attempt(port: int) -> bool:
    """One connection; whether it was there at once."""
    with socket.socket() as sock:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        sock.connect_ex((LOOPBACK, port))
        try:
            sock.getpeername()
        except OSError:
            return False
        return True


class Storm:
    """A number of attempts a second, as evenly as a busy machine allows.

    Args:
        ports: where to, at random.
        attempts_per_second: how often.
        seed: of what is drawn.
    """

    def __init__(self, ports: list[int], attempts_per_second: int, seed: int) -> None:
        self._ports = ports
        self._per_slice = round(attempts_per_second * SLICE_SECONDS)
        self._chance = random.Random(seed)
        self._is_on = False
        self._clear()

    def _clear(self) -> None:
        self._began = time.monotonic()
        self._attempts = 0
        self._connected = 0

    def run(self) -> None:
        """Obey stdin until it ends."""
        tell({})
        while True:
            until = time.monotonic() + SLICE_SECONDS
            if self._is_on:
                for _ in range(self._per_slice):
                    self._connected += attempt(self._chance.choice(self._ports))
                self._attempts += self._per_slice
            wait = max(0.0, until - time.monotonic()) if self._is_on else None
            if select.select([sys.stdin], [], [], wait)[0]:
                word = sys.stdin.readline().strip()
                if not word:
                    return
                tell(self._obey(word))

    def _obey(self, word: str) -> dict[str, Any]:
        figures = {
            "attempts": self._attempts,
            "connected": self._connected,
            "seconds": time.monotonic() - self._began,
        }
        self._is_on = word == "begin"
        self._clear()
        return figures


def main() -> None:
    """Be a storm, but let those who measure have the processor first."""
    os.nice(10)
    Storm(**told()).run()


if __name__ == "__main__":
    main()
