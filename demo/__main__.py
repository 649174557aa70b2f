"""``python3 demo [STORY]``: set up what a story needs, then play it; arguments are the story's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from environment import run_inside

STORIES = ("flights", "netstrings")


def chosen(arguments: list[str]) -> tuple[str, list[str]]:
    """The story to play, the first one if none is named, and the arguments for it."""
    if arguments and arguments[0] in STORIES:
        return arguments[0], arguments[1:]
    return STORIES[0], arguments


def extras(arguments: list[str]) -> str:
    """What is installed for these: PySpark is large, so only for those who ask for it."""
    return "demo,spark" if "--spark" in arguments else "demo"


if __name__ == "__main__":
    story, rest = chosen(sys.argv[1:])
    # -P: a folder called "demo" where the user happens to be must not win.
    run_inside(extras(rest), "-P", "-m", "demo." + story, *rest)
