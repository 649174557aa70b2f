"""``python3 demo [STORY]``: set up what a story needs, then play it; arguments are the story's."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / ".ci"))

from environment import run_inside

STORIES = ("flights", "netstrings")

if __name__ == "__main__":
    arguments = sys.argv[1:]
    story = arguments.pop(0) if arguments and arguments[0] in STORIES else STORIES[0]
    # -P: a folder called "demo" where the user happens to be must not win.
    run_inside("demo", "-P", "-m", "demo." + story, *arguments)
