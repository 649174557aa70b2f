"""A process with several members of one library: ``python -m churn.members LIBRARY BOOTSTRAP …``.

``join NAME`` and ``leave NAME`` come by stdin, whose end makes all leave. What members process is
appended to a file before it is committed, so that it is there if this process is killed. ``ready``,
``left NAME`` and ``failed NAME: …`` go to stdout.
"""

from __future__ import annotations

import logging
import os
import sys
import threading
from collections.abc import Iterable

from churn.libraries import LIBRARIES, Membership, Place, Settings


class Notes:
    """What the members of a process have processed, in a file."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def add(self, places: Iterable[Place]) -> None:
        lines = "".join(f"{partition} {offset}\n" for partition, offset in places)
        os.write(self._file, lines.encode())


def say(text: str) -> None:
    """One line to whoever started this process."""
    os.write(1, f"{text}\n".encode())


def main(library: str, bootstrap: str, group: str, topic: str, session_ms: str, path: str) -> None:
    """Serve commands until there are no more."""
    # Rebalances that were missed are warned of, and happen all the time.
    logging.disable(logging.CRITICAL)
    settings = Settings(bootstrap, group, topic, int(session_ms))
    consume, notes = LIBRARIES[library], Notes(path)
    stops: dict[str, threading.Event] = {}
    threads = []

    def run(member: Membership) -> None:
        try:
            consume(member)
        except Exception as error:  # boundary: one member
            say(f"failed {member.name}: {type(error).__name__}: {error}")
        else:
            say(f"left {member.name}")

    say("ready")
    for line in sys.stdin:
        command, name = line.split()
        if command == "join":
            stops[name] = threading.Event()
            member = Membership(name, settings, stops[name], notes.add)
            threads.append(threading.Thread(target=run, args=[member]))
            threads[-1].start()
        else:
            stops.pop(name).set()
    for stop in stops.values():
        stop.set()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
